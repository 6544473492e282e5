"""Session facts collected from many lines: title, directory and times."""

from __future__ import annotations

from dataclasses import dataclass, field

from moot.types.canonical import JsonObject, empty
from moot.types.format import Fidelity, ImportedFacts
from moot.types.part import Part, text_of

__all__ = ["About"]

_FACTS = (("version", "agent_version"), ("gitBranch", "git_branch"), ("entrypoint", "entrypoint"))
_SUMMARIES = 1000
_TITLE = 80


@dataclass(slots=True)
class About:
    """Facts known so far."""

    directory: str = ""
    created_at: int = 0
    updated_at: int = 0
    head: str | None = None
    dollars: float = 0.0
    """Dollars according to the newest line with a cost."""
    named: str = ""
    """Title chosen by the user, otherwise by the agent."""
    by_person: bool = False
    first_prompt: str = ""
    """Beginning of the first prompt."""
    summaries: dict[int, str] = field(default_factory=dict[int, str])
    """Line of the tree → summary of the session that ends with it. Some versions begin files with summaries of other sessions."""
    metadata: JsonObject = field(default_factory=empty)

    def learn(self, line: JsonObject, at: int) -> None:
        """Read the fields that every line of the tree has."""
        self.created_at = self.created_at or at
        if at > self.updated_at:
            self.updated_at = at
        if not self.directory and isinstance(found := line.get("cwd"), str):
            self.directory = found
        for name, ours in _FACTS:
            if (text := line.get(name)) and isinstance(text, str):
                self.metadata[ours] = text
        if isinstance(session := line.get("sessionId"), str):
            self.metadata["session_id"] = session

    def ask(self, parts: tuple[Part, ...]) -> None:
        """Use the first prompt with text as a fallback title."""
        if not self.first_prompt:
            self.first_prompt = " ".join(text_of(parts)[: 4 * _TITLE].split())[:_TITLE]

    def name(self, line: JsonObject) -> None:
        """Read a line with a title."""
        match line.get("type"), line.get("leafUuid"):
            case "custom-title", _ if isinstance(title := line.get("customTitle"), str) and title:
                self.named, self.by_person = title, True
            case "ai-title", _ if isinstance(title := line.get("aiTitle"), str) and title.strip() and not self.by_person:
                self.named = title.strip()
            case "summary", str() as leaf if isinstance(title := line.get("summary"), str) and title.strip():
                self.summaries[hash(leaf)] = title.strip()
                if len(self.summaries) > _SUMMARIES:
                    del self.summaries[next(iter(self.summaries))]
            case _:
                pass

    def facts(self, fidelity: Fidelity, model: str, summary: str, agent: str) -> ImportedFacts:
        """Return all facts known so far."""
        return ImportedFacts(
            fidelity,
            title=self.named or summary or self.first_prompt,
            head=self.head,
            directory=self.directory,
            agent=agent,
            model=model,
            created_at=self.created_at,
            updated_at=self.updated_at,
            metadata=dict(self.metadata),
        )
