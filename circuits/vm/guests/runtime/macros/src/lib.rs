//! The attribute `#[hekaton_guest::main]`.

use proc_macro::{TokenStream, TokenTree};

/// Makes a function the program: it is called once, and what it returns is the exit code.
///
/// `#[hekaton_guest::main(stack = 0x10_0000)]` gives it a stack of as many bytes; without, it has 64 KiB.
#[proc_macro_attribute]
pub fn main(options: TokenStream, function: TokenStream) -> TokenStream {
    let mut tokens = function.clone().into_iter().skip_while(|token| token.to_string() != "fn");
    let Some(TokenTree::Ident(name)) = tokens.nth(1) else {
        return error("#[hekaton_guest::main] must precede a function");
    };
    let options: Vec<TokenTree> = options.into_iter().collect();
    let stack = match &options[..] {
        [] => String::new(),
        [option, equals, TokenTree::Literal(bytes)]
            if option.to_string() == "stack" && equals.to_string() == "=" =>
        {
            format!(", {bytes}")
        }
        _ => return error("expected no argument, or the size of the stack in bytes: stack = 0x10_0000"),
    };
    let entry: TokenStream =
        format!("::hekaton_guest::entry!({name}{stack});").parse().expect("a call of a macro");
    function.into_iter().chain(entry).collect()
}

fn error(why: &str) -> TokenStream {
    format!("::core::compile_error!({why:?});").parse().expect("a call of a macro")
}
