use serde_json::json;

use super::*;

fn asked(line: &str) -> Option<(Kind, String, String)> {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    wanted(&Cli::command(), &words).map(|wanted| (wanted.kind, wanted.typed, wanted.before))
}

#[test]
fn ct9_a_word_is_read_from_its_place() {
    let is = |line: &str, kind: Kind, typed: &str| {
        assert_eq!(asked(line), Some((kind, typed.to_owned(), String::new())), "{line}");
    };
    is("gsv chat -s ag", Kind::Session, "ag");
    is("gsv chat --agent ", Kind::Agent, "");
    is("gsv --json session get ", Kind::Session, "");
    is("gsv stop ag", Kind::Session, "ag");
    is("gsv session preview --session ag", Kind::Session, "ag");
    is("gsv session show agent:main:", Kind::Session, "agent:main:");
    is("gsv session set k --model an", Kind::Model, "an");
    is("gsv agent show m", Kind::Agent, "m");
    is("gsv model use anthropic/cl", Kind::Model, "anthropic/cl");
    is("gsv config get mod", Kind::Setting, "mod");
    is("gsv -u ws://x config unset ", Kind::Setting, "");
    is("gsv local-config set ch", Kind::LocalSetting, "ch");
    is("gsv nodes forget ", Kind::Node, "");
    is("gsv node forget --id l", Kind::OwnNode, "l");
    is("gsv cp lap", Kind::Place, "lap");
    is("gsv cp --force laptop:a.txt gs", Kind::Place, "gs");
    assert_eq!(
        asked("gsv chat --agent=wo"),
        Some((Kind::Agent, "wo".to_owned(), "--agent=".to_owned()))
    );
    for none in [
        "gsv",
        "gsv ses",
        "gsv chat ",
        "gsv chat -",
        "gsv config set model.id ",
        "gsv chat -s x ",
        "gsv nonsense x",
    ] {
        assert_eq!(asked(none), None, "{none}");
    }
}

#[test]
fn ct9_no_name_is_offered_that_a_shell_or_a_command_would_read_in_another_way() {
    let names = ["desk", "--yes", "-f", "-", "de$k", "desk two", "", "d-1", "desk"].map(str::to_owned);
    let offered = |typed: &str, before: &str| {
        let wanted = Wanted {
            kind: Kind::Node,
            typed: typed.to_owned(),
            before: before.to_owned(),
        };
        super::offered(names.to_vec(), &wanted)
    };
    assert_eq!(offered("", ""), ["d-1", "desk"]);
    assert_eq!(offered("des", "--id="), ["--id=desk"]);
    assert!(offered("-", "").is_empty());
}

#[test]
fn ct9_paths_of_settings_come_without_values() {
    let mut paths = Vec::new();
    settings(
        &json!({"model": {"id": "secret-looking"}, "apiKeys": {"x": "sk-1"}, "list": [1]}),
        "",
        0,
        &mut paths,
    );
    paths.sort();
    assert_eq!(paths, ["apiKeys", "apiKeys.x", "list", "model", "model.id"]);
}
