//! What do the keys of the screen do?

use busbound::report::Help;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

/// Intervals of a log that a page has.
const PAGE: i64 = 10;

/// What was chosen with the keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Controls {
    /// A GPU cannot be stopped; a log can.
    is_live: bool,
    is_help_shown: bool,
    pub(super) is_paused: bool,
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pressed {
    Nothing,
    Leave,
    Redraw,
    /// That many intervals of the log ahead, or back.
    Seek(i64),
}

impl Controls {
    pub(super) fn of(is_live: bool) -> Self {
        Self { is_live, is_help_shown: false, is_paused: false }
    }

    pub(super) fn help(&self) -> Help {
        match (self.is_help_shown, self.is_live) {
            (false, _) => Help::Hidden,
            (true, true) => Help::Live,
            (true, false) => Help::Replay,
        }
    }

    pub(super) fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Pressed {
        match code {
            // In raw mode Ctrl-C is a key, not a signal.
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Pressed::Leave,
            // Esc closes what is open first.
            KeyCode::Esc if self.is_help_shown => self.toggle_help(),
            KeyCode::Char('q') | KeyCode::Esc => Pressed::Leave,
            KeyCode::Char('?') => self.toggle_help(),
            _ if self.is_live => Pressed::Nothing,
            KeyCode::Char(' ') => {
                self.is_paused = !self.is_paused;
                Pressed::Redraw
            }
            KeyCode::Left => Pressed::Seek(-1),
            KeyCode::Right => Pressed::Seek(1),
            KeyCode::Down | KeyCode::PageDown => Pressed::Seek(-PAGE),
            KeyCode::Up | KeyCode::PageUp => Pressed::Seek(PAGE),
            KeyCode::Home => Pressed::Seek(i64::MIN / 2),
            KeyCode::End => Pressed::Seek(i64::MAX / 2),
            _ => Pressed::Nothing,
        }
    }

    fn toggle_help(&mut self) -> Pressed {
        self.is_help_shown = !self.is_help_shown;
        Pressed::Redraw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(controls: &mut Controls, code: KeyCode) -> Pressed {
        controls.press(code, KeyModifiers::NONE)
    }

    #[test]
    fn a_log_can_be_stopped_and_searched() {
        let mut controls = Controls::of(false);
        assert_eq!(press(&mut controls, KeyCode::Char(' ')), Pressed::Redraw);
        assert!(controls.is_paused);
        assert_eq!(press(&mut controls, KeyCode::Left), Pressed::Seek(-1));
        assert_eq!(press(&mut controls, KeyCode::PageUp), Pressed::Seek(10));
        assert_eq!(press(&mut controls, KeyCode::Char(' ')), Pressed::Redraw);
        assert!(!controls.is_paused);
    }

    #[test]
    fn a_gpu_cannot() {
        let mut controls = Controls::of(true);
        for code in [KeyCode::Char(' '), KeyCode::Left, KeyCode::End] {
            assert_eq!(press(&mut controls, code), Pressed::Nothing);
        }
        assert!(!controls.is_paused);
    }

    #[test]
    fn escape_closes_the_help_and_then_the_screen() {
        let mut controls = Controls::of(true);
        assert_eq!(press(&mut controls, KeyCode::Char('?')), Pressed::Redraw);
        assert_eq!(controls.help(), Help::Live);
        assert_eq!(press(&mut controls, KeyCode::Esc), Pressed::Redraw);
        assert_eq!(controls.help(), Help::Hidden);
        assert_eq!(press(&mut controls, KeyCode::Esc), Pressed::Leave);
        let control_c = controls.press(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!((control_c, press(&mut controls, KeyCode::Char('c'))), (Pressed::Leave, Pressed::Nothing));
    }
}
