//! Shows a login: the QR code or the typed code, drawn in place on a terminal, as plain lines in a pipe, or as JSON lines. Does
//! not know the gateway.

use std::time::Duration;

use gsv_protocol::types::{ChannelLogin, LoginState};
use serde_json::{Value, json};

use crate::big_text::big;
use crate::clean::visible;
use crate::in_place::InPlace;
use crate::output::{Output, Style, painted};
use crate::qr::Code;
use crate::units::{in_seconds, millis};
use crate::width::{cut, wrap};

const WORDS_COLUMNS: usize = 100;

pub enum View {
    Json,
    Plain,
    Live(InPlace),
}

/// The current terminal, and what to show besides the channel's own message.
#[derive(Debug, Clone, Copy)]
pub struct Screen<'a> {
    pub columns: usize,
    pub rows: usize,
    pub colour: bool,
    /// Until the login expires.
    pub left: Option<Duration>,
    pub trouble: Option<&'a str>,
    /// The command for a login with a typed code.
    pub by_phone: &'a str,
}

impl View {
    pub fn new(out: Output) -> Self {
        match (out.json, out.repaints) {
            (true, _) => Self::Json,
            (false, true) => Self::Live(InPlace::default()),
            (false, false) => Self::Plain,
        }
    }

    /// Shows a state of the login. `news`: it differs from the one that was shown last.
    pub fn show(&mut self, out: Output, login: &ChannelLogin, news: bool, screen: Screen<'_>) {
        match self {
            Self::Live(block) => {
                let paint = block.show(lines(login, screen), screen.columns);
                out.piece(&paint);
            }
            Self::Json if news => out.json_line(login),
            Self::Plain if news => {
                if let Some(code) = code_of(login) {
                    out.line(&code);
                }
                out.note(&visible(&login.message));
                if let Some(left) = screen.left.filter(|_| code_of(login).is_some()) {
                    out.note(&format!("It expires in {}.", in_seconds(seconds(left))));
                }
            }
            Self::Json | Self::Plain => {}
        }
    }

    /// Removes the code from the screen, so that an old one can't be scanned.
    pub fn end(&mut self, out: Output) {
        if let Self::Live(block) = self {
            let paint = block.wipe(out.size().0);
            out.piece(&paint);
        }
    }

    /// The end of the login, for programs.
    pub fn ended(&self, out: Output, state: &str, message: &str, more: &Value) {
        if matches!(self, Self::Json) {
            let mut value = json!({ "state": state, "message": message });
            if let (Some(fields), Some(more)) = (value.as_object_mut(), more.as_object()) {
                fields.extend(more.clone());
            }
            out.json_line(&value);
        }
    }
}

/// The code that has to get to the phone.
fn code_of(login: &ChannelLogin) -> Option<String> {
    match login.state {
        LoginState::Qr => login.qr.as_deref().map(visible),
        LoginState::Code => login.code.as_deref().map(grouped),
        _ => None,
    }
}

/// `ABCDEFGH` as `ABCD-EFGH`; a code that is grouped already stays.
fn grouped(code: &str) -> String {
    let code = visible(code.trim());
    if code.len() == 8 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        format!("{}-{}", &code[..4], &code[4..])
    } else {
        code
    }
}

/// Whole seconds in ms, so that a line changes once a second.
fn seconds(left: Duration) -> u64 {
    millis(left).div_ceil(1_000).saturating_mul(1_000)
}

fn lines(login: &ChannelLogin, screen: Screen<'_>) -> Vec<String> {
    let width = screen.columns.min(WORDS_COLUMNS);
    let mut words = wrap(&visible(&login.message), width);
    if let Some(trouble) = screen.trouble {
        words.extend(wrap(&visible(trouble), width));
    }
    let left = screen
        .left
        .map_or(String::new(), |left| format!("{} left · ", in_seconds(seconds(left))));
    let hint = cut(&format!("{left}Ctrl-C leaves"), screen.columns);
    words.push(painted(screen.colour, Style::Dim, &hint));
    // One row stays for the cursor.
    let free_rows = screen.rows.saturating_sub(1);
    let mut lines = match (login.state, login.qr.as_deref(), login.code.as_deref()) {
        (LoginState::Qr, Some(qr), _) => drawn(qr, screen, &mut words, free_rows),
        (LoginState::Code, _, Some(code)) => code_lines(&grouped(code), screen),
        _ => Vec::new(),
    };
    lines.append(&mut words);
    // A block that is higher than the terminal can't be drawn in place.
    if lines.len() > free_rows {
        lines.drain(..lines.len() - free_rows);
    }
    lines
}

/// The QR code; if the terminal is too small for it, what to do, and the content of the code.
fn drawn(qr: &str, screen: Screen<'_>, words: &mut Vec<String>, free_rows: usize) -> Vec<String> {
    let width = screen.columns.min(WORDS_COLUMNS);
    let Some(code) = Code::new(qr) else {
        let mut lines = wrap("This code is too long to be drawn. Its content:", width);
        lines.extend(wrap(&visible(qr), screen.columns));
        return lines;
    };
    match code.lines(screen.columns, free_rows.saturating_sub(words.len() + 1), screen.colour) {
        Ok(mut lines) => {
            lines.push(String::new());
            lines
        }
        Err(needs) => {
            let text = format!(
                "The QR code needs {} columns and {} rows; this terminal has {} and {}. Make the window larger or the font smaller, or type a code on the phone: {}",
                needs.columns,
                needs.rows + words.len() + 2,
                screen.columns,
                screen.rows,
                screen.by_phone,
            );
            let mut lines = wrap(&text, width);
            let used = lines.len() + words.len();
            // The message about scanning does not apply.
            let last = words.pop();
            words.clear();
            words.extend(last);
            let mut raw = wrap(&format!("The content of the code: {}", visible(qr)), screen.columns);
            if used + raw.len() <= free_rows {
                lines.append(&mut raw);
            }
            lines
        }
    }
}

fn code_lines(code: &str, screen: Screen<'_>) -> Vec<String> {
    let mut lines = vec![String::new()];
    if let Some(letters) = big(code, screen.columns) {
        lines.extend(letters.map(|line| bold(screen, &line)));
        lines.push(String::new());
    }
    lines.push(bold(screen, &cut(code, screen.columns)));
    lines.push(String::new());
    lines
}

fn bold(screen: Screen<'_>, text: &str) -> String {
    painted(screen.colour, Style::Bold, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clean::clean;
    use crate::width::columns;

    fn screen(columns: usize, rows: usize) -> Screen<'static> {
        Screen {
            columns,
            rows,
            colour: false,
            left: Some(Duration::from_millis(99_900)),
            trouble: None,
            by_phone: "`gsv channel whatsapp login --phone NUMBER`",
        }
    }

    fn login(state: &str, more: &Value) -> ChannelLogin {
        let mut value = json!({"state": state, "message": "Scan this\u{1b}[2J within two minutes."});
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_code_to_type_in_is_shown_big_and_grouped() {
        let code = login("code", &json!({"code": "ABCDEFGH"}));
        insta::assert_snapshot!(lines(&code, screen(80, 24)).join("\n"), @r"

        ▄▀▀▀▄ █▀▀▀▄ ▄▀▀▀▀ █▀▀▀▄       █▀▀▀▀ █▀▀▀▀ ▄▀▀▀▀ █   █
        █▀▀▀█ █▀▀▀▄ █     █   █  ▀▀▀  █▀▀▀  █▀▀▀  █  ▀█ █▀▀▀█
        ▀   ▀ ▀▀▀▀   ▀▀▀▀ ▀▀▀▀        ▀▀▀▀▀ ▀      ▀▀▀▀ ▀   ▀

        ABCD-EFGH

        Scan this[U+001B][2J within two minutes.
        1 min 40 s left · Ctrl-C leaves
        ");
        let narrow = lines(&code, screen(30, 24));
        assert!(narrow.contains(&"ABCD-EFGH".to_owned()), "{narrow:?}");
        assert_eq!(grouped("AB-12"), "AB-12");
        assert_eq!(grouped("K7Q2\u{1b}[2J"), "K7Q2[U+001B][2J");
    }

    #[test]
    fn nothing_is_ever_larger_than_the_terminal() {
        let qr = login("qr", &json!({"qr": format!("https://wa.me/#{}", "x".repeat(300))}));
        let code = login("code", &json!({"code": "ABCD-EFGH"}));
        let waits = login("connecting", &json!({}));
        for login in [&qr, &code, &waits] {
            for wide in [1, 10, 40, 66, 80, 200] {
                for high in [1, 2, 5, 24, 40, 100] {
                    let lines = lines(login, screen(wide, high));
                    assert!(lines.len() < high.max(1), "{} in {high}", lines.len());
                    assert!(
                        lines.iter().all(|line| columns(&clean(line)) <= wide),
                        "{wide}: {lines:?}"
                    );
                }
            }
        }
        assert!(lines(&qr, screen(80, 45)).iter().any(|line| line.contains('█')));
    }

    #[test]
    fn the_named_size_is_enough() {
        let qr = login("qr", &json!({"qr": format!("https://wa.me/#{}", "x".repeat(300))}));
        let shown = lines(&qr, screen(100, 24)).join(" ");
        let numbers: Vec<usize> = shown
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|word| word.parse().ok())
            .collect();
        let (wide, high) = (numbers[0], numbers[1]);
        assert!(
            lines(&qr, screen(wide.max(80), high))
                .iter()
                .any(|line| line.contains('█')),
            "{wide} {high}"
        );
    }
}
