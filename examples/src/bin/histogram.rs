//! `histogram`: the whole program for one circuit. Try `cargo run --release -p hekaton-examples --bin
//! histogram -- --help`.

use hekaton_app::App;

fn main() -> std::process::ExitCode {
    App::new("histogram").circuit::<hekaton_examples::histogram::Histogram>().run()
}
