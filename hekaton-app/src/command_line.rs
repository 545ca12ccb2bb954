//! The command line in the program's own words: its name, its circuits, and without options for what it does not have.

use crate::app::App;
use crate::options::Options;
use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};
use hekaton_circuit::named::Description;

/// The circuit that examples in texts name, and the one of its parameters that `--for` follows from.
const STAND_IN: &str = "merkle";
const STAND_IN_PARAMETER: &str = " (for merkle: the number of leaves)";

/// Options for imported circuits: the command's name, or that of the command above it, and the option.
const OF_IMPORTS: [(&str, &str); 7] = [
    ("setup", "r1cs"),
    ("verify", "r1cs"),
    ("verify", "circuit"),
    ("check", "sym"),
    ("check", "second"),
    ("new", "r1cs"),
    ("finish", "circuit"),
];

/// The command line, as far as parsing needs it.
pub(crate) fn for_parsing(app: &App) -> Command {
    let own = Options::command().name(app.name());
    app.products().fold(own, |command, product| product.commands(command))
}

/// The command line with its texts, for which each circuit is asked whether it has families.
pub(crate) fn command_line(app: &App) -> Command {
    let words = Words::of(app);
    words.adapt(for_parsing(app).long_about(words.introduction()))
}

/// The words of a program in its texts.
struct Words {
    program: &'static str,
    circuits: Vec<Description>,
    /// `true` for each of them that has families.
    with_families: Vec<bool>,
    imports: bool,
    /// The names of circuits that products have commands for.
    products: Vec<&'static str>,
}

impl Words {
    fn of(app: &App) -> Self {
        Self {
            program: app.name(),
            circuits: app.descriptions(),
            with_families: app.with_families().collect(),
            imports: app.imports().is_ok(),
            products: app
                .products()
                .filter_map(|it| Some(it.circuit()?.description().name))
                .collect(),
        }
    }

    /// The first circuit, if the texts have to name it.
    fn first(&self) -> Option<&Description> {
        self.circuits.first()
    }

    /// Reports whether the first circuit has families.
    fn has_families(&self) -> bool {
        self.with_families.first().is_some_and(|has| *has)
    }

    /// The name of the first circuit in a command, after a space; empty for the only one.
    fn name(&self) -> String {
        match &self.circuits[..] {
            [first, _, ..] => format!(" {}", first.name),
            _ => String::new(),
        }
    }

    /// The parameters that the first circuit needs, each after a space.
    fn needed(&self) -> String {
        let needed = self.first().into_iter().flat_map(|it| it.parameters);
        let needed = needed.filter(|parameter| parameter.default.is_none());
        needed.map(|parameter| format!(" -p {}=VALUE", parameter.name)).collect()
    }

    /// The first paragraphs of `--help`.
    fn introduction(&self) -> String {
        let mut text = "Proves computations that are too large for one prover: splits them into\nsubcircuits, proves these \
                        in parallel, and aggregates them into one small proof."
            .to_owned();
        let Some(first) = self.first() else { return text };
        text += "\n\nCircuits:\n";
        self.circuits.iter().for_each(|it| text += &format!("\n  {}: {}", it.name, it.about));
        // The name of the program is put in with all texts.
        let (program, name, keys) = ("hekaton", self.name(), first.name);
        let (setup, verify) = match self.has_families() {
            true => (" --up-to 1M".to_owned(), format!("--key {keys}.keys --for FILE")),
            false => (self.needed(), format!("--key {keys}.keys/verifying.key")),
        };
        text += &format!(
            "\n\nA first proof, and its verification:\n\n  {program} setup{name}{setup} --keys {keys}.keys\n  \
             {program} prove FILE --keys {keys}.keys --proof FILE.proof\n  {program} verify FILE.proof {verify} \\\n      \
             --public \"$({program} hash FILE --keys {keys}.keys)\""
        );
        text
    }

    /// Replaces the texts of a command and its subcommands.
    fn adapt(&self, mut command: Command) -> Command {
        if let Some(text) = self.replaced(command.get_after_help()) {
            command = command.after_help(text);
        }
        if let Some(text) = self.replaced(command.get_long_about()) {
            command = command.long_about(text);
        }
        if let Some(text) = self.replaced(command.get_about()) {
            command = command.about(text);
        }
        let name = command.get_name().to_owned();
        command.mut_args(|arg| self.argument(&name, arg)).mut_subcommands(|it| self.adapt(it))
    }

    fn argument(&self, command: &str, mut arg: Arg) -> Arg {
        let id = arg.get_id().as_str().to_owned();
        if let Some(text) = self.replaced(arg.get_help()) {
            arg = arg.help(text);
        }
        if let Some(text) = self.replaced(arg.get_long_help()) {
            arg = arg.long_help(text);
        }
        let of_families = id == "up_to" && ["setup", "estimate"].contains(&command);
        if of_families && !self.with_families.contains(&true) {
            return arg.hide(true);
        }
        if self.imports {
            return arg;
        }
        if (command, id.as_str()) == ("inspect", "path") {
            return arg.help("A proof, a key, a key store, or a key family");
        }
        if OF_IMPORTS.contains(&(command, &id)) {
            return arg.hide(true);
        }
        match (id.as_str(), &self.circuits[..]) {
            // A new ceremony without a name is one for powers.
            ("circuit", [only]) if command != "new" => {
                arg.help(format!("The circuit, {}; it need not be named", only.name))
            }
            ("circuit", all @ [_, ..]) => {
                let names: Vec<&str> = all.iter().map(|it| it.name).collect();
                arg.help(format!("The circuit: {}", names.join(", ")))
            }
            _ => arg,
        }
    }

    /// A text with the program's name and first circuit in its commands.
    fn replaced(&self, text: Option<&StyledStr>) -> Option<String> {
        let text = text?.to_string();
        let is_own = self.circuits.len() == 1 || self.first().is_some_and(|it| it.name != STAND_IN);
        let text = if is_own { text.replace(STAND_IN_PARAMETER, "") } else { text };
        let lines: Vec<String> = text.lines().filter_map(|line| self.line(line, is_own)).collect();
        // All examples may be of what the program does not have.
        let lines = match &lines[..] {
            [title, empty, rest @ ..] if title.starts_with("Example") && empty.is_empty() => rest,
            all => all,
        };
        let text = lines.join("\n");
        let named = text.replace("hekaton ", &format!("{} ", self.program));
        let folder = "bash_completion.d/";
        Some(named.replace(&format!("{folder}hekaton"), &format!("{folder}{}", self.program)))
    }

    /// A line of a text; `None` for an example of what the program does not have.
    fn line(&self, line: &str, is_own: bool) -> Option<String> {
        let is_command = line.trim_start().starts_with("hekaton ");
        let of_imports = [".r1cs", ".hk", ".wtns"].iter().any(|it| line.contains(it));
        let of_machine = line.contains(" vm ");
        if is_command && of_imports && !self.imports {
            return None;
        }
        if is_command && of_machine {
            return self.products.contains(&"vm").then(|| line.to_owned());
        }
        let (true, true, Some(first)) = (is_command, is_own, self.first()) else {
            return Some(line.to_owned());
        };
        let of_families = ["--up-to", "keys derive", "key family", ".keys --for"];
        let of_families = of_families.iter().any(|it| line.contains(it));
        if of_families && !self.has_families() {
            return None;
        }
        let indent = line.len() - line.trim_start().len();
        // The directory of a ceremony, and the circuit of a new one, are always named.
        let name = match line.contains("ceremony") {
            true => first.name.to_owned(),
            false => self.name().trim_start().to_owned(),
        };
        let (mut words, mut parameters) = (Vec::new(), Some(self.needed()));
        let mut all = line.trim_start().split(' ');
        while let Some(word) = all.next() {
            match word.strip_prefix(STAND_IN) {
                _ if word == "--circuit" && name.is_empty() => {
                    all.next();
                }
                _ if word == "-p" => {
                    all.next();
                    let needed = parameters.take().map(|it| it.trim_start().to_owned());
                    words.extend(needed.filter(|it| !it.is_empty()));
                }
                Some("") if name.is_empty() => {}
                Some("") => words.push(name.clone()),
                Some(rest) if rest.starts_with('.') => words.push(format!("{}{rest}", first.name)),
                _ => words.push(word.to_owned()),
            }
        }
        Some(" ".repeat(indent) + words.join(" ").trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_standard::{Chain, Merkle};

    fn help(app: &App, command: Option<&str>) -> String {
        let mut line = command_line(app);
        let found = match command {
            Some(name) => line.find_subcommand_mut(name).unwrap(),
            None => &mut line,
        };
        found.render_long_help().to_string()
    }

    /// Names that look like those of other programs and tools change nothing but the names.
    #[test]
    fn a_program_may_have_any_name() {
        for name in ["sha256", "vm", "my-hekaton"] {
            let app = App::new(name).circuit::<Chain>();
            let text = help(&app, None);
            for line in [
                format!("\n  {name} setup --keys chain.keys\n"),
                format!("\n  {name} prove FILE --keys chain.keys --proof FILE.proof\n"),
                format!("\n  {name} verify FILE.proof --key chain.keys/verifying.key \\\n"),
            ] {
                assert!(text.contains(&line), "{line}{text}");
            }
            let text = help(&app, Some("hash"));
            assert!(text.contains(&format!("\n  {name} hash FILE --keys FILE.keys\n")), "{text}");
        }
    }

    /// Examples of families are those of circuits that have families, and circuits are named where there are several.
    #[test]
    fn examples_are_of_the_first_circuit() {
        let (one, two) = (App::new("tree").circuit::<Merkle>(), App::new("two").circuit::<Chain>());
        let two = two.circuit::<Merkle>();
        assert!(help(&one, Some("setup")).contains("\n  tree setup --up-to 1M --keys merkle.keys"));
        let text = help(&two, Some("setup"));
        assert!(
            text.contains("\n  two setup chain --for FILE")
                && !text.contains("two setup chain --up")
        );
        assert!(text.contains("The circuit: chain, merkle"), "{text}");
        assert!(help(&App::new("none"), None).starts_with("Proves computations"));
    }
}
