"""The player in a terminal (`trapline step --tui`): the recording of the page, played with textual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.validation import Integer
from textual.widgets import Footer, Input, Static

from trapline.player.panes import NEW, SOFT, Shown
from trapline.player.terminal_model import TerminalRecording

# The marks of the right and the wrong one of two recordings.
_MARKS: Final = {None: "", True: "\N{CHECK MARK} ", False: "\N{BALLOT X} "}


class Pane(VerticalScroll, inherit_bindings=False):
    """A pane, which scrolls up and down; the other keys are those of the player."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_up", show=False),
        Binding("down", "scroll_down", show=False),
    ]

    def __init__(self, number: int) -> None:
        super().__init__(id=f"pane-{number}", classes="first" if number == 0 else "")
        self._text = Static()

    def compose(self) -> ComposeResult:
        """Yield the text."""
        yield self._text

    def show(self, title: str, shown: Shown) -> None:
        """Show lines, and scroll to the present one."""
        self.border_title = title
        self.set_class(shown.prose, "prose")
        self._text.update(shown.content())
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        if shown.here is not None and not top <= shown.here < top + height:
            self.call_after_refresh(self.scroll_to, y=max(0, shown.here - height // 2), animate=False)


class JumpScreen(ModalScreen[int]):
    """The question for the number of a step."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Cancel")]

    def __init__(self, last: int) -> None:
        super().__init__()
        self._last = last

    def compose(self) -> ComposeResult:
        """Yield the field."""
        yield Input(placeholder=f"step, 0 to {self._last}", type="integer", validators=[Integer(0, self._last)])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Return a number that is a step."""
        if event.validation_result is not None and event.validation_result.is_valid:
            self.dismiss(int(event.value))


class PlayerApp(App[None]):
    """The player: one recording at a time, one step of it at a time."""

    CSS_PATH = "terminal.tcss"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (70, "-narrow"), (130, "-wide")]  # noqa: RUF012  textual reads it
    VERTICAL_BREAKPOINTS = [(0, "-low"), (36, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", "Back", key_display="\N{LEFTWARDS ARROW}"),
        Binding("right,l,space", "move(1)", "On", key_display="\N{RIGHTWARDS ARROW}"),
        Binding("pageup,[", "stage(-1)", "Stage back", show=False),
        Binding("pagedown,]", "stage(1)", "Stage", key_display="PgDn"),
        Binding("home,g", "to(0)", "First step", show=False),
        Binding("end,G", "to(-1)", "Last step", show=False),
        Binding("j", "jump", "Jump"),
        Binding("r", "recording(1)", "Recording"),
        Binding("R", "recording(-1)", "Recording before", show=False),
        Binding("p", "choose_next", "Pane"),
        *(Binding(str(number), f"choose({number})", f"Pane {number}", show=False) for number in range(1, 10)),
        Binding("z", "zoom", "Zoom"),
        Binding("d", "scheme", "Dark/light", show=False),
        Binding("?", "help", "Keys", key_display="?"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, title: str, recordings: Sequence[TerminalRecording]) -> None:
        super().__init__()
        self.title = title
        self.recordings = recordings
        self.recording = 0
        self.step = 0
        self.chosen = 1
        """The pane beside the first one."""

    def compose(self) -> ComposeResult:
        """Yield the step and its sentence, the panes, and the keys."""
        yield Static(id="tabs")
        yield Static(id="note")
        yield Static(id="position")
        yield Static(id="sentence")
        yield Static(id="fault")
        yield Static(id="bar")
        yield Static(id="titles")
        with Container(id="panes"):
            for number in range(len(self.recordings[0].panes(0))):
                yield Pane(number)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Show the first step."""
        self._show()

    def on_resize(self) -> None:
        """Draw the bar in the new width."""
        self.call_after_refresh(self._show)

    def check_action(self, action: str, parameters: tuple[Any, ...]) -> bool | None:
        """Return whether a key has an effect: that of the recordings needs several."""
        del parameters
        return action != "recording" or len(self.recordings) > 1

    # -- keys

    def action_move(self, by: int) -> None:
        """Go some steps forwards, or backwards if it is negative."""
        self._go(self.step + by)

    def action_stage(self, direction: int) -> None:
        """Go to the next stage, or to the one before."""
        self._go(self.recordings[self.recording].next_stage(self.step, direction))

    def action_to(self, step: int) -> None:
        """Go to a step; -1 is the last one."""
        self._go(step if step >= 0 else len(self.recordings[self.recording]) - 1)

    def action_jump(self) -> None:
        """Ask for a step, and go there."""
        self.push_screen(JumpScreen(len(self.recordings[self.recording]) - 1), self._jumped)

    def _jumped(self, step: int | None) -> None:
        if step is not None:
            self._go(step)

    def action_recording(self, by: int) -> None:
        """Go to the same stage of another recording."""
        before = self.recordings[self.recording]
        self.recording = (self.recording + by) % len(self.recordings)
        self._go(before.aligned(self.step, self.recordings[self.recording]))

    def action_choose(self, number: int) -> None:
        """Choose a pane by its number, from 1."""
        if number <= len(self.query(Pane)):
            self.chosen = number - 1
            self.query_one(f"#pane-{self.chosen}").focus()
            self._show()

    def action_choose_next(self) -> None:
        """Choose the next pane."""
        self.action_choose((self.chosen + 1) % len(self.query(Pane)) + 1)

    def action_zoom(self) -> None:
        """Give the chosen pane the whole width, or take it back."""
        self.query_one("#panes").toggle_class("zoomed")
        self._show()

    def action_scheme(self) -> None:
        """Change between dark and light."""
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"
        self._show()

    def action_help(self) -> None:
        """Show the keys, or hide them."""
        if self.screen.query("HelpPanel"):
            self.action_hide_help_panel()
        else:
            self.action_show_help_panel()

    # -- what is shown

    def _go(self, step: int) -> None:
        self.step = max(0, min(step, len(self.recordings[self.recording]) - 1))
        self._show()

    def _show(self) -> None:
        recording, step = self.recordings[self.recording], self.step
        last = len(recording) - 1
        self._put("tabs", self._tabs())
        self._put("note", recording.note, shown=bool(recording.note) and step == 0)
        self._put("position", f"Step {step} of {last} | {recording.position(step)}")
        self._put("sentence", recording.sentence(step))
        self._put("fault", recording.fault(step), shown=bool(recording.fault(step)))
        width = max(self.size.width - 2, 1)
        done = round(width * step / last) if last else width
        self._put("bar", Content.assemble("\N{BOX DRAWINGS HEAVY HORIZONTAL}" * done,
                                          ("\N{BOX DRAWINGS LIGHT HORIZONTAL}" * (width - done), SOFT)))  # fmt: skip
        panes = recording.panes(step)
        self._put("titles", self._titles(list(panes)))
        for number, (title, shown) in enumerate(panes.items()):
            pane = self.query_one(f"#pane-{number}", Pane)
            pane.set_class(number == self.chosen, "chosen")
            pane.show(f"{number + 1} {title}", shown)

    def _put(self, name: str, text: str | Content, *, shown: bool = True) -> None:
        widget = self.query_one(f"#{name}", Static)
        widget.update(Content(text) if isinstance(text, str) else text)
        widget.set_class(not shown, "hidden")

    def _tabs(self) -> Content:
        parts: list[Content | str] = [Content.styled(self.title, "bold")]
        if len(self.recordings) > 1:
            for number, recording in enumerate(self.recordings):
                style = "reverse" if number == self.recording else SOFT
                parts += ["  ", Content.styled(f" {_MARKS[recording.good]}{recording.label} ", style)]
        return Content.assemble(*parts)

    def _titles(self, titles: Sequence[str]) -> Content:
        """Return the numbers of the panes with the first word of each, and the chosen one in full."""
        names = [f"{number} {title if number == self.chosen + 1 else title.split()[0].strip(',')} "
                 for number, title in enumerate(titles, 1)]  # fmt: skip
        return Content.assemble(*((name, NEW if number == self.chosen else SOFT) for number, name in enumerate(names)))
