//! A tool of the program itself: its calls, answers, time limits and cancellations, with a fake program.

use std::sync::Mutex;

use gsv_tools::Cancel;
use serde_json::json;

use super::*;
use crate::host::{Program, Start};

/// Notes what it is told, and answers with `reply` at once, if there is one.
#[derive(Default)]
struct Fake {
    host: Arc<Host>,
    reply: Option<Answer>,
    /// What it answers when it is told to stop.
    last_word: Option<Answer>,
    is_ending: bool,
    started: Mutex<Vec<Start>>,
    stopped: Mutex<Vec<Stop>>,
}

impl Program for Fake {
    fn start(&self, start: Start) -> bool {
        if self.is_ending {
            return false;
        }
        if let Some(reply) = self.reply.clone() {
            self.host.answered(start.number, reply);
        }
        self.started.lock().unwrap().push(start);
        true
    }

    fn stop(&self, number: u32, stop: Stop) {
        self.stopped.lock().unwrap().push(stop);
        if let Some(last) = self.last_word.clone() {
            self.host.answered(number, last);
        }
    }
}

fn scene(idempotent: bool, fake: Fake) -> (OwnTool, Arc<Fake>) {
    let host = Arc::clone(&fake.host);
    let fake = Arc::new(fake);
    host.attach(Arc::clone(&fake) as Arc<dyn Program>);
    let definition = ToolDefinition {
        name: "Lights".into(),
        description: "Sets the lights.".into(),
        input_schema: json!({"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}),
        idempotent,
        timeout_ms: None,
    };
    (OwnTool::new(definition, host).unwrap(), fake)
}

fn on() -> Value {
    json!({ "on": true })
}

#[tokio::test]
async fn nj3_a_function_gives_the_result_and_what_it_throws_is_the_error() {
    let (tool, fake) = scene(
        false,
        Fake {
            reply: Some(Ok(json!("done"))),
            ..Fake::default()
        },
    );
    assert_eq!(
        tool.invoke(on(), CallContext::new("a/1")).await.unwrap(),
        ToolOutput::Json(json!("done"))
    );
    let started = fake.started.lock().unwrap().clone();
    assert_eq!(
        (started[0].call_id.as_str(), started[0].tool.as_str(), &started[0].args),
        ("a/1", "Lights", &on())
    );
    let (tool, _) = scene(
        false,
        Fake {
            reply: Some(Err("no bulb".into())),
            ..Fake::default()
        },
    );
    let error = tool.invoke(on(), CallContext::new("a/2")).await.unwrap_err();
    assert_eq!((error.reason(), error.to_string().as_str()), ("tool.failed", "no bulb"));
}

#[tokio::test]
async fn nj4_arguments_that_do_not_fit_never_reach_the_function() {
    let (tool, fake) = scene(false, Fake::default());
    for args in [json!({}), json!({"on": "yes"}), json!([]), json!(null)] {
        let error = tool.invoke(args, CallContext::new("a/1")).await.unwrap_err();
        assert_eq!(error.reason(), "tool.bad_args", "{error}");
    }
    assert_eq!(*fake.started.lock().unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn nj5_a_function_that_ends_after_its_signal_is_cancelled_and_one_that_goes_on_has_an_unknown_outcome() {
    for (idempotent, last_word, reason) in [
        (false, Some(Err("aborted".into())), "tool.cancelled"),
        (false, None, "tool.outcome_unknown"),
        (true, None, "tool.cancelled"),
    ] {
        let (tool, fake) = scene(
            idempotent,
            Fake {
                last_word,
                ..Fake::default()
            },
        );
        let cancel = Cancel::default();
        let context = CallContext {
            cancel: cancel.clone(),
            ..CallContext::new("a/1")
        };
        let (error, ()) = tokio::join!(tool.invoke(on(), context), async {
            tokio::task::yield_now().await;
            cancel.cancel();
        });
        assert_eq!(error.unwrap_err().reason(), reason);
        assert_eq!(fake.stopped.lock().unwrap()[0], Stop::Cancelled);
    }
    let (tool, _) = scene(
        false,
        Fake {
            last_word: Some(Ok(json!("it was on already"))),
            ..Fake::default()
        },
    );
    let cancel = Cancel::default();
    let context = CallContext {
        cancel: cancel.clone(),
        ..CallContext::new("a/1")
    };
    let (output, ()) = tokio::join!(tool.invoke(on(), context), async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert_eq!(
        output.unwrap(),
        ToolOutput::Json(json!("it was on already")),
        "what was done is reported"
    );
}

#[tokio::test(start_paused = true)]
async fn nj5_a_function_that_never_ends_is_told_at_its_deadline() {
    for (idempotent, last_word, reason) in [
        (false, Some(Err("aborted".into())), "tool.timeout"),
        (false, None, "tool.outcome_unknown"),
        (true, None, "tool.timeout"),
    ] {
        let (tool, fake) = scene(
            idempotent,
            Fake {
                last_word,
                ..Fake::default()
            },
        );
        let begun = Instant::now();
        let context = CallContext {
            deadline: Some(begun + Duration::from_secs(30)),
            ..CallContext::new("a/1")
        };
        assert_eq!(tool.invoke(on(), context).await.unwrap_err().reason(), reason);
        assert_eq!(fake.stopped.lock().unwrap()[0], Stop::Late);
        assert!(begun.elapsed() <= Duration::from_secs(30) + GRACE);
    }
}

#[tokio::test]
async fn nj5_a_program_that_ends_runs_nothing_more_and_leaves_an_unknown_outcome() {
    let (tool, fake) = scene(
        false,
        Fake {
            is_ending: true,
            ..Fake::default()
        },
    );
    let error = tool.invoke(on(), CallContext::new("a/1")).await.unwrap_err();
    assert!(error.to_string().contains("nothing was run"), "{error}");
    assert_eq!(*fake.started.lock().unwrap(), []);

    let (tool, fake) = scene(false, Fake::default());
    let (ended, ()) = tokio::join!(tool.invoke(on(), CallContext::new("a/2")), async {
        tokio::task::yield_now().await;
        fake.host.detach();
    });
    assert_eq!(ended.unwrap_err().reason(), "tool.outcome_unknown");
}

#[tokio::test]
async fn nj5_a_call_that_is_given_up_tells_the_function() {
    let (tool, fake) = scene(false, Fake::default());
    let mut call = tool.invoke(on(), CallContext::new("a/1"));
    assert!(futures_poll(&mut call).await.is_none());
    drop(call);
    assert_eq!(*fake.stopped.lock().unwrap(), [Stop::Closed]);
    let number = fake.started.lock().unwrap()[0].number;
    fake.host.answered(number, Ok(json!("late")));
}

/// Polls once.
async fn futures_poll<T>(future: &mut BoxFuture<'_, T>) -> Option<T> {
    tokio::select! {
        biased;
        value = future => Some(value),
        () = std::future::ready(()) => None,
    }
}

#[test]
fn nj3_blocks_stay_blocks_and_everything_else_is_json() {
    let blocks =
        json!({"content": [{"type": "text", "text": "a"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]});
    let ToolOutput::Blocks(output) = output_of(blocks.clone()) else {
        panic!("should be blocks");
    };
    assert_eq!(serde_json::to_value(&output).unwrap(), blocks);
    for value in [
        json!("text"),
        json!(null),
        json!({"content": "text"}),
        json!({"content": [{"type": "video"}]}),
        json!({"content": [], "more": 1}),
    ] {
        assert_eq!(output_of(value.clone()), ToolOutput::Json(value));
    }
}
