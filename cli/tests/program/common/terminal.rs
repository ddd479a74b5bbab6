//! A program on its own pseudo terminal: the test types and reads the screen.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZero;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{Home, try_wait_for};

/// A program on its own pseudo terminal.
pub struct Terminal {
    pub child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
    emulator: Arc<Mutex<vt100::Parser>>,
}

impl Terminal {
    pub fn start(command: Command) -> Self {
        Self::sized(command, 0, 0)
    }

    /// Starts on a terminal of this size. A terminal of size 0 does not tell its size.
    pub fn sized(command: Command, columns: u16, rows: u16) -> Self {
        Self::made(command, columns, rows, "xterm-256color")
    }

    /// Starts on a terminal of this kind (`TERM`).
    pub fn of_kind(command: Command, kind: &str) -> Self {
        Self::made(command, 100, 60, kind)
    }

    fn made(mut command: Command, columns: u16, rows: u16, kind: &str) -> Self {
        let (keyboard, slave) = pair();
        resize(&keyboard, columns, rows);
        command.env("TERM", kind);
        command.stdin(slave.try_clone().unwrap());
        command.stdout(slave.try_clone().unwrap());
        command.stderr(slave);
        let child = command.spawn().unwrap();
        // The command holds the terminal's other end; without it the screen would never end.
        drop(command);
        let mut output = keyboard.try_clone().unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&screen);
        let size = |given: u16, usual: u16| NonZero::new(given.max(usual)).unwrap();
        let emulator = vt100::Parser::new(size(rows, 24), size(columns, 80), 0);
        let emulator = Arc::new(Mutex::new(emulator));
        let drawn = Arc::clone(&emulator);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A character may arrive in two pieces.
            let mut rest = Vec::new();
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                rest.extend_from_slice(&bytes[..count]);
                drawn.lock().unwrap().process(&bytes[..count]);
                let text = whole_text(&mut rest);
                shown.lock().unwrap().push_str(&text);
            }
        });
        Self {
            child,
            keyboard,
            screen,
            emulator,
        }
    }

    /// `gsv` on a terminal that is large enough.
    pub fn gsv(home: &Home, args: &[&str]) -> Self {
        let mut command = home.command();
        command.args(args);
        Self::sized(command, 100, 60)
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        resize(&self.keyboard, columns, rows);
    }

    /// Ctrl-C, as the terminal sends it.
    pub fn interrupt(&self) {
        self.signal("-INT");
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Whether keys are shown as they are typed.
    pub fn echoes(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.keyboard).unwrap();
        modes.local_modes.contains(rustix::termios::LocalModes::ECHO)
    }

    /// The output that no test has waited for.
    pub fn rest(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// The screen as a person sees it now.
    pub fn picture(&self) -> String {
        self.emulator.lock().unwrap().screen().contents()
    }

    /// Waits until the screen has `text`.
    #[track_caller]
    pub fn pictures(&self, text: &str) -> String {
        try_wait_for(|| Some(self.picture()).filter(|picture| picture.contains(text)))
            .unwrap_or_else(|| panic!("{text:?} is not on the screen: {}", self.picture()))
    }

    /// Waits until `text` is shown, and drops the output up to it.
    #[track_caller]
    pub fn shows(&self, text: &str) -> String {
        try_wait_for(|| {
            let mut screen = self.screen.lock().unwrap();
            let at = screen.find(text)?;
            let rest = screen.split_off(at + text.len());
            Some(std::mem::replace(&mut *screen, rest))
        })
        .unwrap_or_else(|| panic!("{text:?} was not shown; shown was {:?}", self.rest()))
    }

    pub fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    #[track_caller]
    pub fn ends_with(mut self, code: i32) {
        assert_eq!(self.ended(), Some(code), "{:?}", self.screen.lock().unwrap());
    }

    /// Waits for the end.
    #[track_caller]
    pub fn ended(&mut self) -> Option<i32> {
        let status = try_wait_for(|| self.child.try_wait().unwrap());
        status
            .unwrap_or_else(|| panic!("it did not end; shown was {:?}", self.rest()))
            .code()
    }
}

/// The two ends of a pseudo terminal: the person's, and the program's.
pub fn pair() -> (File, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave = OpenOptions::new().read(true).write(true).open(name).unwrap();
    (File::from(master), slave)
}

/// Takes the text out of `bytes`; the beginning of an incomplete character stays.
fn whole_text(bytes: &mut Vec<u8>) -> String {
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    let rest = bytes.split_off(whole);
    String::from_utf8_lossy(&std::mem::replace(bytes, rest)).into_owned()
}

fn resize(terminal: impl std::os::fd::AsFd, columns: u16, rows: u16) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).unwrap();
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // After a failed test it would run forever.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
