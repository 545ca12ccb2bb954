//! The names and the mean age of people in a JSON file.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use hekaton_guest::{commit, input};
use serde::Deserialize;

#[derive(Deserialize)]
struct Person {
    name: String,
    age: f64,
}

#[hekaton_guest::main]
fn main() -> Result<(), serde_json::Error> {
    let people: Vec<Person> = serde_json::from_slice(input())?;
    let sum: f64 = people.iter().map(|person| person.age).sum();
    commit(&people.iter().map(|person| person.name.as_str()).collect::<Vec<_>>());
    commit(&(sum / people.len() as f64));
    Ok(())
}
