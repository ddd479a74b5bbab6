//! `gsv setup`, `gsv model` and `gsv provider` against a gateway that the test plays.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;

use crate::common::Home;
use crate::common::fake_gateway::{Connection, FakeGateway};
use crate::common::play::{Play, asked, fed, played, serve};
use crate::common::terminal::Terminal;
use serde_json::{Value, json};

const KEY: &str = "sk-ant-0123456789abcdef";

fn provider(name: &str, title: &str, ready: bool) -> Value {
    json!({"provider": name, "name": title, "models": 2, "ready": ready})
}
fn providers() -> Value {
    json!({"providers": [
        provider("anthropic", "Anthropic", false),
        provider("openai", "OpenAI", false),
        provider("google", "Google", true),
        provider("google-vertex", "Google Vertex AI", false),
    ]})
}
fn models() -> Value {
    let model = |id: &str| {
        json!({"id": id, "contextWindow": 1_000_000, "maxTokens": 64_000, "images": true, "thinking": true,
            "price": {"input": 3.0, "output": 15.0, "cacheRead": 0.3, "cacheWrite": 3.75}})
    };
    json!({"models": [model("claude-haiku-4-5"), model("claude-opus-5"), model("claude-sonnet-5")]})
}
fn model(provider: &str, id: &str) -> Value {
    json!({"provider": provider, "id": id})
}
fn present(connection: &mut Connection, value: &Value) {
    serve(
        connection,
        "config.get",
        &json!({"path": "model"}),
        &json!({"value": value}),
    );
}
fn tested(connection: &mut Connection, asked: &Value, answer: &Value) {
    serve(
        connection,
        "model.test",
        asked,
        &json!({"model": answer, "tookMs": 900}),
    );
}
fn set(connection: &mut Connection, path: &str, value: &Value) {
    serve(
        connection,
        "config.set",
        &json!({"path": path, "value": value}),
        &json!({"ok": true, "path": path, "warnings": [warning(path)]}),
    );
}
/// What the gateway says of a change of a setting.
fn warning(path: &str) -> String {
    format!("{path} has a warning.")
}
/// The model is changed in one request, on the condition that the settings are as they were read.
fn switched(connection: &mut Connection, before: &Value, after: &Value) {
    let config = |model: &Value| json!({"model": model, "userTimezone": "UTC"});
    serve(
        connection,
        "config.get",
        &json!({}),
        &json!({"config": config(before), "version": 7}),
    );
    serve(
        connection,
        "config.replace",
        &json!({"config": config(after), "version": 7}),
        &json!({"ok": true, "version": 8, "changed": ["model.id"], "warnings": [warning("model")]}),
    );
}
/// One has a model of its own.
fn agents(connection: &mut Connection) {
    let agent = |id: &str| json!({"agentId": id, "isDefault": id == "main", "commissioned": true, "sessions": 0});
    let mut work = agent("work");
    work["model"] = model("groq", "x");
    serve(
        connection,
        "agents.list",
        &json!({}),
        &json!({"agents": [agent("main"), work]}),
    );
}
/// The time zone stands, and no name is given.
fn owner(connection: &mut Connection) {
    serve(
        connection,
        "config.get",
        &json!({"path": "userTimezone"}),
        &json!({"value": "Asia/Tokyo"}),
    );
}

#[test]
fn su1_su2_a_person_is_asked_and_a_refused_key_can_be_typed_again() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    thread::scope(|scope| {
        let play = scope.spawn(|| {
            let mut connection = gateway.accept();
            present(
                &mut connection,
                &json!({"provider": "demo", "id": "demo", "fallbacks": []}),
            );
            serve(&mut connection, "models.list", &json!({}), &providers());
            present(&mut connection, &model("demo", "demo"));
            serve(
                &mut connection,
                "models.list",
                &json!({"provider": "anthropic"}),
                &models(),
            );
            let request = connection.expect("model.test");
            assert_eq!(
                request.params,
                json!({"model": model("anthropic", "demo"), "apiKey": "sk-typo"})
            );
            connection.error(&request, 403, "model.auth", "Anthropic refused the key (401).");
            let chosen = model("anthropic", "claude-sonnet-5");
            let asked = json!({"model": model("anthropic", "demo"), "apiKey": KEY});
            tested(&mut connection, &asked, &chosen);
            let other = model("anthropic", "claude-opus-5");
            let asked = json!({"model": other, "apiKey": KEY});
            tested(&mut connection, &asked, &other);
            set(&mut connection, "apiKeys.anthropic", &json!(KEY));
            let before = json!({"provider": "demo", "id": "demo", "fallbacks": [], "baseUrl": "http://127.0.0.1:1/v1"});
            let after = json!({"provider": "anthropic", "id": "claude-opus-5", "fallbacks": []});
            switched(&mut connection, &before, &after);
            agents(&mut connection);
            let mut connection = gateway.accept();
            owner(&mut connection);
            let file = "# Your human\n\n- Name:\n- Languages:\n";
            let content = json!({"path": "USER.md", "content": file, "etag": "e1", "size": file.len()});
            let request = connection.expect("workspace.read");
            connection.answer(&request, &content);
            serve(
                &mut connection,
                "workspace.write",
                &json!({"path": "USER.md", "content": file.replace("- Name:", "- Name: Sam"), "ifMatch": "e1"}),
                &json!({"path": "USER.md", "size": 1, "written": true}),
            );
        });
        let mut terminal = Terminal::gsv(&home, &["setup", "--no-services", "--no-path", "--no-message"]);
        terminal.shows("A server of your own needs a name first");
        terminal.shows("[anthropic]:");
        // Several providers have it in their names.
        terminal.types("goog\r");
        terminal.shows("google, google-vertex");
        terminal.types("anthropic\r");
        terminal.shows("Key of anthropic (it is not shown)");
        terminal.types("sk-typo\r");
        terminal.shows("Anthropic refused the key (401).");
        terminal.types(&format!("{KEY}\r"));
        terminal.shows("anthropic/claude-sonnet-5 answered");
        terminal.shows("Model [claude-sonnet-5]:");
        terminal.types("opus\r");
        terminal.shows("Your time zone [Asia/Tokyo]:");
        terminal.types("\r");
        terminal.shows("Your name");
        terminal.types("Sam\r");
        let screen = terminal.rest();
        assert!(!screen.contains("sk-"), "{screen}");
        terminal.ends_with(0);
        play.join().unwrap();
    });
}

#[test]
fn su1_without_a_person_what_no_option_says_stays() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let plays: Vec<Play<'_>> = vec![
        Box::new(|connection| {
            present(connection, &model("google", "gemini-2.5-pro"));
            serve(connection, "models.list", &json!({}), &providers());
            present(connection, &model("google", "gemini-2.5-pro"));
            serve(
                connection,
                "models.list",
                &json!({"provider": "google"}),
                &json!({"models": []}),
            );
            let same = model("google", "gemini-2.5-pro");
            tested(connection, &json!({"model": same}), &same);
            switched(connection, &same, &same);
            agents(connection);
        }),
        Box::new(owner),
    ];
    let args = ["setup", "--yes", "--no-services", "--no-path", "--no-message", "--json"];
    let run = fed(&home, &gateway, &args, "", plays).ok();
    assert_eq!(
        run.json(),
        json!({"model": model("google", "gemini-2.5-pro"), "timezone": "Asia/Tokyo", "services": false})
    );
    assert!(run.stderr.contains("work (groq/x) keeps its own model:"), "{run:?}");
}

#[test]
fn su1_without_a_person_and_without_a_choice_nothing_is_done() {
    let home = Home::new();
    for (args, words) in [
        (&["setup"][..], "Without a terminal nothing can be asked"),
        (&["setup", "--name", "Sam", "--json"], "With --json nothing is asked"),
    ] {
        let run = home.gsv(args).failed(2);
        assert!(run.stderr.contains(words), "{run:?}");
        assert!(run.stderr.contains("`gsv setup --yes`"), "{run:?}");
    }
    assert!(!home.state().exists() && !home.config_file().exists());
}

#[test]
fn su1_a_conversation_with_messages_gets_no_greeting() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let plays: Vec<Play<'_>> = vec![
        Box::new(|connection| {
            present(connection, &model("demo", "demo"));
            serve(connection, "models.list", &json!({}), &providers());
        }),
        Box::new(owner),
        Box::new(|connection| {
            serve(
                connection,
                "session.preview",
                &json!({"sessionKey": "agent:main:cli:dm:main", "limit": 1}),
                &json!({"sessionKey": "agent:main:cli:dm:main", "sessionId": "s", "messageCount": 7, "messages": [
                    {"role": "assistant", "content": "Done."}
                ]}),
            );
        }),
    ];
    let args = ["setup", "--yes", "--no-services", "--no-path"];
    let run = fed(&home, &gateway, &args, "", plays).ok();
    assert!(run.stderr.contains("has messages already"), "{run:?}");
    assert!(!run.stderr.contains("Your first message"), "{run:?}");
}

#[test]
fn su1_a_server_of_ones_own_needs_no_key_and_a_call_without_an_answer_changes_nothing() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let own = json!({"provider": "mybox", "id": "m1", "baseUrl": "http://127.0.0.1:1/v1"});
    let play: Play<'_> = Box::new(|connection| {
        present(connection, &own);
        serve(connection, "models.list", &json!({}), &providers());
        present(connection, &own);
        serve(
            connection,
            "models.list",
            &json!({"provider": "mybox"}),
            &json!({"models": []}),
        );
        let request = connection.expect("model.test");
        assert_eq!(request.params, json!({"model": model("mybox", "m1")}));
        connection.error(&request, 503, "model.unreachable", "The server can't be reached.");
    });
    let args = ["setup", "--no-services", "--no-path", "--no-message", "--yes"];
    let run = fed(&home, &gateway, &args, "", vec![play]).failed(4);
    assert!(run.stderr.contains("can't be reached"), "{run:?}");
}

fn new_provider(connection: &mut Connection) {
    present(connection, &model("demo", "demo"));
    serve(connection, "models.list", &json!({}), &providers());
    present(connection, &model("demo", "demo"));
    serve(connection, "models.list", &json!({"provider": "anthropic"}), &models());
}

#[test]
fn su2_a_person_who_agreed_to_store_untested_can_choose_another_model_while_no_call_can_be_made() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    thread::scope(|scope| {
        let play = scope.spawn(|| {
            let mut connection = gateway.accept();
            new_provider(&mut connection);
            for _ in 0..2 {
                let request = connection.expect("model.test");
                connection.error(&request, 503, "model.unreachable", "The server can't be reached.");
            }
            set(&mut connection, "apiKeys.anthropic", &json!(KEY));
            switched(
                &mut connection,
                &model("demo", "demo"),
                &model("anthropic", "claude-opus-5"),
            );
            agents(&mut connection);
            let mut connection = gateway.accept();
            owner(&mut connection);
        });
        let args = [
            "setup",
            "--provider",
            "anthropic",
            "--no-services",
            "--no-path",
            "--no-message",
        ];
        let mut terminal = Terminal::gsv(&home, &args);
        terminal.shows("Key of anthropic");
        terminal.types(&format!("{KEY}\r"));
        terminal.shows("Store it untested? [y/N]");
        terminal.types("y\r");
        terminal.shows("Model [");
        terminal.types("opus\r");
        terminal.shows("the model is stored untested");
        terminal.shows("Your time zone [Asia/Tokyo]:");
        terminal.types("\r");
        terminal.shows("Your name");
        terminal.types("\r");
        terminal.rest();
        terminal.ends_with(0);
        play.join().unwrap();
    });
}

#[test]
fn su2_who_stores_nothing_untested_is_told_that_and_why() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    thread::scope(|scope| {
        let play = scope.spawn(|| {
            let mut connection = gateway.accept();
            new_provider(&mut connection);
            let request = connection.expect("model.test");
            connection.error(&request, 503, "model.unreachable", "The server can't be reached.");
        });
        let args = [
            "setup",
            "--provider",
            "anthropic",
            "--no-services",
            "--no-path",
            "--no-message",
        ];
        let mut terminal = Terminal::gsv(&home, &args);
        terminal.shows("Key of anthropic");
        terminal.types(&format!("{KEY}\r"));
        terminal.shows("Store it untested? [y/N]");
        terminal.types("\r");
        terminal.shows("Nothing was stored and no model was changed, because anthropic could not be tested.");
        terminal.shows("Run `gsv setup` again");
        assert_ne!(terminal.ended(), Some(0));
        play.join().unwrap();
    });
}

#[test]
fn su2_an_unknown_model_is_not_stored_untested() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    thread::scope(|scope| {
        let play = scope.spawn(|| {
            let mut connection = gateway.accept();
            new_provider(&mut connection);
            let request = connection.expect("model.test");
            connection.error(&request, 404, "model.unknown", "There is no such model.");
        });
        let args = [
            "setup",
            "--provider",
            "anthropic",
            "--no-services",
            "--no-path",
            "--no-message",
        ];
        let mut terminal = Terminal::gsv(&home, &args);
        terminal.shows("Key of anthropic");
        terminal.types(&format!("{KEY}\r"));
        let screen = terminal.rest();
        assert!(!screen.contains("untested"), "{screen}");
        play.join().unwrap();
    });
}

#[test]
fn su3_a_name_and_a_time_zone_are_checked_before_anything_is_done() {
    for args in [["setup", "--timezone", "Mars/Base"], ["setup", "--name", " "]] {
        Home::new().gsv(args).failed(2);
    }
}

#[test]
fn su2_a_key_that_is_missing_on_stdin_is_said_before_anything_is_started() {
    let home = Home::new();
    let args = ["setup", "--provider", "anthropic", "--key-stdin", "--yes"];
    let run = home.gsv_with_stdin(args, "\n").failed(2);
    assert!(
        run.stderr.contains("No key was given, and nothing was changed."),
        "{run:?}"
    );
    assert!(!home.state().exists() && !home.config_file().exists());
}

#[test]
fn su1_a_port_is_refused_for_a_gateway_that_is_not_this_machines() {
    let home = Home::new();
    home.write_config("url = \"wss://gsv.example:1\"\ntoken = \"gsv_client_abc_def\"\n");
    let run = home.gsv(["setup", "--port", "8800", "--yes"]).failed(2);
    assert!(run.stderr.contains("Leave out --port"), "{run:?}");
}

#[test]
fn su2_a_model_that_the_demo_does_not_have_is_refused_before_anything_is_started() {
    let home = Home::new();
    let run = home
        .gsv(["setup", "--yes", "--provider", "demo", "--model", "foo"])
        .failed(2);
    assert!(run.stderr.contains("`--model foo` can't be used"), "{run:?}");
    assert!(!home.state().exists());
}

#[test]
fn su2_a_provider_without_a_key_and_a_misspelt_one_change_nothing() {
    for (provider, words) in [("openai", "--key-stdin"), ("openay", "Did you mean openai?")] {
        let run = played(&["setup", "--provider", provider, "--yes"], |connection| {
            present(connection, &model("demo", "demo"));
            serve(connection, "models.list", &json!({}), &providers());
            if provider == "openai" {
                present(connection, &model("demo", "demo"));
                serve(connection, "models.list", &json!({"provider": "openai"}), &models());
            }
        });
        let run = run.failed(2);
        assert!(run.stderr.contains(words), "{run:?}");
    }
}

#[test]
fn su2_an_address_that_was_set_for_another_provider_is_said_to_be_unused_before_the_test() {
    let mut early = model("demo", "demo");
    early["baseUrl"] = json!("http://127.0.0.1:1/v1");
    let run = played(&["setup", "--provider", "openai", "--yes"], |connection| {
        present(connection, &early);
        serve(connection, "models.list", &json!({}), &providers());
        present(connection, &early);
        serve(connection, "config.get", &json!({"path": "providers"}), &json!({}));
        serve(connection, "models.list", &json!({"provider": "openai"}), &models());
    });
    let said = run.failed(2).stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = r#"`model.baseUrl` was set before openai was chosen and is not used for it. To use it: `gsv config set providers.openai '{"baseUrl":"http://127.0.0.1:1/v1","wire":"openai-completions"}'`, then run this command again."#;
    assert!(said.contains(expected), "{said}");
    // No warning when the provider has such a setting, or when the address is of the provider before.
    let servers = json!({"value": {"openai": {"baseUrl": "http://127.0.0.1:1/v1"}}});
    let run = played(&["setup", "--provider", "openai", "--yes"], |connection| {
        present(connection, &early);
        serve(connection, "models.list", &json!({}), &providers());
        present(connection, &early);
        serve(connection, "config.get", &json!({"path": "providers"}), &servers);
        serve(connection, "models.list", &json!({"provider": "openai"}), &models());
    });
    assert!(!run.failed(2).stderr.contains("baseUrl"));
    let mut other = model("anthropic", "x");
    other["baseUrl"] = json!("http://127.0.0.1:1/v1");
    let run = played(&["setup", "--provider", "openai", "--yes"], |connection| {
        present(connection, &other);
        serve(connection, "models.list", &json!({}), &providers());
        present(connection, &other);
        serve(connection, "config.get", &json!({"path": "providers"}), &json!({}));
        serve(connection, "models.list", &json!({"provider": "openai"}), &models());
    });
    assert!(!run.failed(2).stderr.contains("baseUrl"));
}

#[test]
fn su2_a_model_is_used_after_a_call_that_it_answered() {
    let found = model("anthropic", "claude-sonnet-5");
    let run = played(&["model", "use", "anthropic"], |connection| {
        present(connection, &model("anthropic", "old"));
        tested(connection, &json!({"model": model("anthropic", "demo")}), &found);
        let old = json!({"provider": "anthropic", "id": "old", "baseUrl": "http://127.0.0.1:1"});
        let kept = json!({"provider": "anthropic", "id": "claude-sonnet-5", "baseUrl": "http://127.0.0.1:1"});
        switched(connection, &old, &kept);
        agents(connection);
    });
    assert!(
        run.ok()
            .stderr
            .contains("anthropic/claude-sonnet-5 answers from now on.")
    );
    let fails = |before: &Value| {
        let run = played(&["model", "use", "openai/gpt-5.4-mini"], |connection| {
            present(connection, before);
            if before.get("baseUrl").is_some() {
                serve(connection, "config.get", &json!({"path": "providers"}), &json!({}));
            }
            let request = connection.expect("model.test");
            connection.error(&request, 403, "model.auth", "OpenAI refused the key (401).");
        });
        run.failed(1).stderr.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = fails(&model("anthropic", "x"));
    assert!(
        said.contains("OpenAI refused the key") && !said.contains("baseUrl"),
        "{said}"
    );
    // Said before the call, whose failure does not name the reason.
    let set = r#"`gsv config set providers.openai '{"baseUrl":"http://127.0.0.1:1/v1","wire":"openai-completions"}'`, then run this command again."#;
    for (provider, words) in [
        (
            "demo",
            "`model.baseUrl` was set before openai was chosen and is not used for it. To use it: ",
        ),
        (
            "mine",
            "`model.baseUrl` is the server of mine and is not used for openai. If it is the server of openai too: ",
        ),
    ] {
        let mut early = model(provider, "x");
        early["baseUrl"] = json!("http://127.0.0.1:1/v1");
        let said = fails(&early);
        assert!(said.contains(&format!("warning: {words}{set}")), "{said}");
    }
    let run = played(&["model", "use", "openrouter/meta/llama", "--untested"], |connection| {
        let old = json!({"provider": "anthropic", "id": "old", "baseUrl": "http://127.0.0.1:1"});
        switched(connection, &old, &model("openrouter", "meta/llama"));
        agents(connection);
    });
    let warned = run.ok().stderr;
    assert!(warned.contains("work (groq/x) keeps its own model:"), "{warned}");
    let warned = warned.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        warned.contains(
            "`model.baseUrl` was set before openrouter was chosen and is removed, so that nothing for openrouter goes to another server."
        ) && warned.contains(r#"`gsv config set providers.anthropic '{"baseUrl":"http://127.0.0.1:1","wire":"openai-completions"}'`"#),
        "{warned}"
    );
    let wrong = Home::new().gsv(["model", "use", "/x"]).failed(2);
    assert!(wrong.stderr.contains("names no model"), "{wrong:?}");
}

#[test]
fn su2_the_server_of_another_provider_is_removed_with_its_headers_and_how_to_keep_it_is_said() {
    let mut own = model("mine", "x");
    own["baseUrl"] = json!("http://127.0.0.1:1/v1");
    own["wire"] = json!("anthropic-messages");
    own["headers"] = json!({"authorization": "***"});
    let next = model("openai", "y");
    let run = played(&["model", "use", "openai/y", "--untested"], |connection| {
        switched(connection, &own, &next);
        agents(connection);
    });
    let warned = run.ok().stderr;
    assert!(
        warned.contains("`model.baseUrl`, `model.wire`, `model.headers` were set before openai was chosen")
            && warned.contains("\"wire\":\"anthropic-messages\""),
        "{warned}"
    );
    // The demo model has no server: the address may be meant for the model that is chosen.
    let mut early = model("demo", "demo");
    early["baseUrl"] = json!("http://127.0.0.1:1/v1");
    let run = played(&["model", "use", "openai/y", "--untested"], |connection| {
        switched(connection, &early, &next);
        agents(connection);
    });
    let warned = run.ok().stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        warned.contains("If it is the server of openai: `gsv config set providers.openai '{\"baseUrl\":\"http://127.0.0.1:1/v1\",\"wire\":\"openai-completions\"}'`"),
        "{warned}"
    );
}

#[test]
fn su2_a_change_of_others_meanwhile_is_kept_and_an_older_gateway_is_served() {
    let wanted = model("anthropic", "claude-sonnet-5");
    let run = played(
        &["model", "use", "anthropic/claude-sonnet-5", "--untested"],
        |connection| {
            serve(
                connection,
                "config.get",
                &json!({}),
                &json!({"config": {"model": model("demo", "demo")}, "version": 1}),
            );
            let request = connection.expect("config.replace");
            assert_eq!(request.params, json!({"config": {"model": wanted}, "version": 1}));
            connection.error(&request, 409, "config.changed", "The configuration has changed.");
            let mut before = model("demo", "demo");
            before["contextWindow"] = json!(9000);
            let mut after = wanted.clone();
            after["contextWindow"] = json!(9000);
            switched(connection, &before, &after);
            agents(connection);
        },
    );
    run.ok();
    let run = played(
        &["model", "use", "anthropic/claude-sonnet-5", "--untested"],
        |connection| {
            serve(
                connection,
                "config.get",
                &json!({}),
                &json!({"config": {"model": model("demo", "demo")}}),
            );
            present(connection, &model("demo", "demo"));
            set(connection, "model", &wanted);
            agents(connection);
        },
    );
    run.ok();
}

#[test]
fn models_are_listed_of_the_named_or_the_present_provider_and_one_is_tested() {
    let list = |args: &[&str], present_first: bool| {
        played(args, |connection| {
            if present_first {
                present(connection, &model("anthropic", "claude-sonnet-5"));
            }
            serve(connection, "models.list", &json!({"provider": "anthropic"}), &models());
        })
        .ok()
        .stdout
    };
    let named = list(&["model", "list", "anthropic"], false);
    assert!(
        named.contains("claude-opus-5") && named.contains("1,000,000") && named.contains("$3.00 / $15.00"),
        "{named}"
    );
    assert_eq!(list(&["model", "list"], true), named);
    let all = asked(&["provider", "list"], "models.list", &json!({}), &providers())
        .ok()
        .stdout;
    assert!(all.contains("google         Google            2       yes"), "{all}");
    let answer = json!({"model": model("anthropic", "claude-sonnet-5"), "tookMs": 1200});
    let test = asked(&["model", "test"], "model.test", &json!({}), &answer).ok();
    assert!(
        test.stderr.contains("anthropic/claude-sonnet-5 answered in"),
        "{test:?}"
    );
}

#[test]
fn su4_the_program_is_linked_where_no_other_is() {
    let gateway = FakeGateway::new();
    let home = gateway.home();
    let folder = home.root().join(".local").join("bin");
    let link = folder.join("gsv");
    let setup = || {
        let plays: Vec<Play<'_>> = vec![
            Box::new(|connection| {
                present(connection, &model("demo", "demo"));
                serve(connection, "models.list", &json!({}), &providers());
            }),
            Box::new(owner),
        ];
        fed(
            &home,
            &gateway,
            &["setup", "--no-services", "--no-message", "--yes"],
            "",
            plays,
        )
        .ok()
    };
    // What is left of a program that was removed.
    fs::create_dir_all(&folder).unwrap();
    symlink("/nonexistent/gsv", &link).unwrap();
    let first = setup();
    assert!(first.stderr.contains("does not look there yet"), "{first:?}");
    let this = fs::canonicalize(env!("CARGO_BIN_EXE_gsv")).unwrap();
    assert_eq!(fs::canonicalize(&link).unwrap(), this);
    setup();
    fs::remove_file(&link).unwrap();
    fs::write(&link, "mine").unwrap();
    assert!(setup().stderr.contains("is another program"));
    assert_eq!(fs::read_to_string(&link).unwrap(), "mine");
}

#[test]
fn sp3_sc3_each_choice_shows_what_the_gateway_warns_of() {
    let says = |stderr: &str, path: &str| stderr.contains(&format!("warning: {}\n", warning(path)));
    let wanted = model("google", "gemini-2.5-pro");
    let usage = ["model", "use", "google/gemini-2.5-pro", "--untested"];
    let run = played(&usage, |connection| {
        switched(connection, &model("demo", "demo"), &wanted);
        agents(connection);
    });
    assert!(says(&run.ok().stderr, "model"));
    // An older gateway changes the model alone.
    let run = played(&usage, |connection| {
        let config = json!({"model": model("demo", "demo")});
        serve(connection, "config.get", &json!({}), &json!({"config": config}));
        present(connection, &model("demo", "demo"));
        set(connection, "model", &wanted);
        agents(connection);
    });
    assert!(says(&run.ok().stderr, "model"));

    let gateway = FakeGateway::new();
    let home = gateway.home();
    let plays: Vec<Play<'_>> = vec![
        Box::new(|connection| {
            present(connection, &model("demo", "demo"));
            serve(connection, "models.list", &json!({}), &providers());
            present(connection, &model("demo", "demo"));
            serve(
                connection,
                "models.list",
                &json!({"provider": "google"}),
                &json!({"models": []}),
            );
            let asked = json!({"model": wanted, "apiKey": KEY});
            tested(connection, &asked, &wanted);
            set(connection, "apiKeys.google", &json!(KEY));
            switched(connection, &model("demo", "demo"), &wanted);
            agents(connection);
        }),
        Box::new(|connection| {
            owner(connection);
            set(connection, "userTimezone", &json!("Europe/Berlin"));
        }),
    ];
    let args = "setup --no-services --no-path --no-message --provider google --model gemini-2.5-pro --key-stdin --timezone Europe/Berlin";
    let args: Vec<&str> = args.split(' ').collect();
    let run = fed(&home, &gateway, &args, KEY, plays).ok();
    for path in ["model", "apiKeys.google", "userTimezone"] {
        assert!(says(&run.stderr, path), "{path}: {run:?}");
    }
}
