//! `gsv resume` of a restored copy, with the real workerd and a Worker that answers as a gateway does, or loses its answers.

use std::fs;
use std::path::PathBuf;

use crate::common::Run;
use crate::common::runtime::Embedded;

/// As a gateway. `resume(attempt)` gives the answer to a resume, or nothing: then the connection ends.
const WORKER: &str = r#"
let attempts = 0;
const serve = (socket) => {
  socket.accept();
  socket.addEventListener("message", ({ data }) => {
    if (data === "ping") return socket.send("pong");
    const { id, method } = JSON.parse(data);
    const say = (fields) => socket.send(JSON.stringify({ type: "res", id, ...fields }));
    if (method === "connect")
      return say({ ok: true, payload: { type: "hello-ok", protocol: 1, server: { version: "9.9.9", connectionId: "c" }, features: { methods: ["gateway.status"], events: [] } } });
    if (method === "gateway.status") return say({ ok: true, payload: { stopped: { since: 1, by: "gsv restore" } } });
    const answer = resume(++attempts);
    answer === undefined ? socket.close(1011, "gone") : say(answer);
  });
};
const REFUSED = { ok: false, error: { code: 7, reason: "auth.forbidden", message: "No." } };
const BROKEN = { ok: false, error: { code: 500, reason: "internal", message: "Broken." } };
const DONE = { ok: true, payload: { ok: true, wasStopped: false, sessions: 0 } };
const worker = {
  fetch(request, env) {
    if (new URL(request.url).pathname === "/health") return Response.json({ ok: true, version: env.VERSION });
    const [client, server] = Object.values(new WebSocketPair());
    serve(server);
    return new Response(null, { status: 101, webSocket: client });
  },
};
"#;

struct Copy {
    gateway: Embedded,
    mark: PathBuf,
}

impl Copy {
    /// A restored copy that runs. `resume`: the Worker's function.
    fn new(resume: &str) -> Self {
        let gateway = Embedded::new();
        let path = gateway.runtime.join("worker.js");
        let worker = fs::read_to_string(&path).unwrap();
        let classes = worker.split("export default").next().unwrap();
        fs::write(
            &path,
            format!("{classes}{WORKER}const resume = {resume};\nexport default worker;\n"),
        )
        .unwrap();
        gateway.home.write_state("start-stopped", "01a");
        let mark = gateway.home.state().join("gateway/start-stopped");
        let up = gateway.up().ok();
        assert!(up.stderr.contains("restored copy"), "{}", up.stderr);
        Self { gateway, mark }
    }

    fn resume(&self) -> Run {
        self.gateway.gsv(&["resume"])
    }

    /// Whether it has its mark, and whether workerd runs as for one that has.
    fn is_marked(&self) -> (bool, bool) {
        let config = fs::read_to_string(self.mark.with_file_name("config.capnp")).unwrap();
        (self.mark.exists(), config.contains("START_STOPPED"))
    }
}

#[test]
fn bk23_a_refused_resume_leaves_a_copy_with_its_mark_and_without_channels() {
    let copy = Copy::new("() => REFUSED");
    let run = copy.resume().failed(3);
    assert!(run.stderr.contains("auth.forbidden"), "{}", run.stderr);
    assert_eq!(copy.is_marked(), (true, true), "{}", run.stderr);
    assert_eq!(copy.gateway.state().unwrap()["reloads"], 2);
}

#[test]
fn bk23_a_resume_whose_answer_is_lost_is_sent_again_and_sets_no_mark() {
    let copy = Copy::new("(attempt) => (attempt === 1 ? undefined : DONE)");
    let run = copy.resume().ok();
    assert!(
        run.stderr
            .contains("GSV is not stopped. The gateway's first answer was lost"),
        "{}",
        run.stderr
    );
    assert_eq!(copy.is_marked(), (false, false));
}

#[test]
fn bk23_a_resume_with_an_unknown_end_sets_no_mark_and_says_what_to_do() {
    for (answers, exit) in [
        ("() => undefined", 4),
        // The second request is refused for a reason that says nothing about the first.
        ("(attempt) => (attempt === 1 ? undefined : REFUSED)", 4),
        // It may have failed after it had resumed.
        ("() => BROKEN", 70),
    ] {
        let copy = Copy::new(answers);
        let run = copy.resume().failed(exit);
        assert!(
            run.stderr.contains("not known whether the gateway has resumed")
                && run.stderr.contains("gsv resume` once more"),
            "{}",
            run.stderr
        );
        assert_eq!(copy.is_marked(), (false, false));
    }
}
