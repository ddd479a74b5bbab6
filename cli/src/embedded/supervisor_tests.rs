//! The supervisor with a workerd that does nothing; the test answers in its place.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::*;

const HEALTHY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"ok\":true}";

/// A state folder whose workerd does nothing. The test answers on its port.
fn idle_workerd(home: &Path) -> (Layout, Runtime) {
    let layout = Layout {
        home: home.join("state"),
    };
    layout.ensure().unwrap();
    let dir = home.join("runtime");
    std::fs::create_dir(&dir).unwrap();
    let manifest = r#"{"version":"1","compatibilityDate":"2026-11-01"}"#;
    for (name, content) in [("manifest.json", manifest), ("worker.js", ""), ("r2.js", "")] {
        std::fs::write(dir.join(name), content).unwrap();
    }
    // The shell runs the first argument of workerd, which is `serve`.
    symlink("/bin/sh", dir.join("workerd")).unwrap();
    std::fs::write(layout.gateway().join("serve"), "exec sleep 300\n").unwrap();
    (layout, Runtime::open(&dir).unwrap())
}

/// Answers health requests while `answers` is true. Counts its answers.
async fn answer(listener: TcpListener, mut answers: watch::Receiver<bool>, count: watch::Sender<u32>) {
    loop {
        let (mut socket, _) = listener.accept().await.unwrap();
        answers.wait_for(|answers| *answers).await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            if socket.read_buf(&mut request).await.unwrap_or(0) == 0 {
                break;
            }
        }
        // The supervisor may have given up on this request.
        let _ = socket.write_all(HEALTHY).await;
        count.send_modify(|count| *count += 1);
    }
}

async fn state_when(path: PathBuf, holds: impl Fn(&State) -> bool) -> State {
    loop {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if let Ok(state) = serde_json::from_str(&text)
            && holds(&state)
        {
            return state;
        }
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn p12_a_gateway_that_lives_and_no_longer_answers_is_killed_and_restarted() {
    let home = tempfile::tempdir().unwrap();
    let (layout, runtime) = idle_workerd(home.path());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (answers, is_answering) = watch::channel(true);
    let (count, mut answered) = watch::channel(0);
    let watchdog = Watchdog {
        every: Duration::from_millis(100),
        failures: 4,
    };
    let mode = Mode::Foreground(Box::new(|_| {}));
    let story = async {
        // The first answer makes it ready; the others are to the watchdog.
        answered.wait_for(|count| *count >= 3).await.unwrap();
        let before = state_when(layout.state(), |state| state.phase == Phase::Ready).await;
        let hung = Process::of(before.workerd_pid.unwrap());
        assert!(hung.is_alive());
        answers.send_replace(false);
        state_when(layout.state(), |state| {
            state.restarts > before.restarts && state.workerd_pid.is_some()
        })
        .await;
        assert!(!hung.is_alive(), "the blocked process was killed");
        answers.send_replace(true);
        let after = state_when(layout.state(), |state| {
            state.phase == Phase::Ready && state.restarts > before.restarts
        })
        .await;
        assert_ne!(after.workerd_pid, before.workerd_pid);
        let log = std::fs::read_to_string(layout.log()).unwrap();
        assert!(log.contains("although its process lives, so it was killed"), "{log}");
    };
    tokio::time::timeout(Duration::from_secs(60), async {
        tokio::select! {
            () = story => {}
            () = answer(listener, is_answering, count) => {}
            _ = keep_running(layout.clone(), runtime, port, mode, watchdog) => panic!("the supervisor ended"),
        }
    })
    .await
    .expect("the blocked gateway is not restarted");
}

#[tokio::test]
async fn p12_a_gateway_whose_state_cannot_be_stored_is_restarted() {
    let home = tempfile::tempdir().unwrap();
    let (layout, runtime) = idle_workerd(home.path());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (_answers, is_answering) = watch::channel(true);
    let (count, _) = watch::channel(0);
    let (pids, mut ready) = tokio::sync::mpsc::unbounded_channel();
    let mode = Mode::Foreground(Box::new(move |pid| pids.send(pid).unwrap()));
    let (state, log) = (layout.state(), layout.log());
    let story = async {
        let first = ready.recv().await.unwrap();
        // No file can be put in the place of a folder with files, as none can be written on a full disk.
        std::fs::remove_file(&state).unwrap();
        std::fs::create_dir(&state).unwrap();
        std::fs::write(state.join("file"), "").unwrap();
        Process::of(first).terminate();
        let second = ready.recv().await.unwrap();
        assert!(!Process::of(first).is_alive() && Process::of(second).is_alive());
        let log = std::fs::read_to_string(log).unwrap();
        assert!(log.contains("the state is not stored"), "{log}");
    };
    tokio::time::timeout(Duration::from_secs(60), async {
        tokio::select! {
            () = story => {}
            () = answer(listener, is_answering, count) => {}
            ended = keep_running(layout, runtime, port, mode, Watchdog::default()) => panic!("{ended:?}"),
        }
    })
    .await
    .expect("the test hangs");
}
