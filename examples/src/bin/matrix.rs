//! `matrix`: the whole program for one circuit. Try `cargo run --release -p hekaton-examples --bin
//! matrix -- --help`.

use hekaton_app::App;

fn main() -> std::process::ExitCode {
    App::new("matrix").circuit::<hekaton_examples::matrix::Matrix>().run()
}
