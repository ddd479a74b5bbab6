//! `/thoughts`: whether the thoughts of the model are shown, and all of one of them.

use super::Talk;
use crate::chat::output_lines::whole;
use crate::chat::thoughts::ThoughtsAsk;
use crate::output::Style;

impl Talk<'_> {
    /// Gives what was switched.
    pub(super) fn show_thoughts(&mut self, ask: ThoughtsAsk) -> Option<bool> {
        let thoughts = self.view.thoughts();
        match ask {
            ThoughtsAsk::Unclear => self
                .out
                .note("Write `/thoughts on` or `/thoughts off`, or `/thoughts N` for all of thought N."),
            ThoughtsAsk::State => {
                self.out.note(if thoughts.is_on() {
                    "What the model thinks is shown. `/thoughts off` hides it."
                } else {
                    "What the model thinks is not shown. `/thoughts on` shows it."
                });
                if let Some((first, last)) = thoughts.numbers() {
                    self.out
                        .aside(&format!("All of one of thoughts {first} to {last}: `/thoughts N`"));
                }
            }
            ThoughtsAsk::Switch(on) => {
                self.view.show_thoughts(on);
                self.out.aside(if on {
                    "From now on: what the model thinks is shown, where its provider sends it."
                } else {
                    "From now on: what the model thinks is not shown."
                });
                return Some(on);
            }
            ThoughtsAsk::Show(number) => match thoughts.find(number) {
                None => self.out.note(&format!("This chat keeps no thought {number}.")),
                Some(text) => {
                    self.out
                        .note(&format!("{number}. {}", self.out.paint_note(Style::Bold, "thinking")));
                    for line in whole(text, self.out.size().0.saturating_sub(1)) {
                        self.out.note(&line);
                    }
                }
            },
        }
        None
    }
}
