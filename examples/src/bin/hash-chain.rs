//! `hash-chain`: the whole program for one circuit. Try `cargo run --release -p hekaton-examples --bin
//! hash-chain -- --help`.

use hekaton_app::App;

fn main() -> std::process::ExitCode {
    App::new("hash-chain").circuit::<hekaton_examples::hash_chain::HashChain>().run()
}
