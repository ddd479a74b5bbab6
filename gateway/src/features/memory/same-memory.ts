/** Whether two requests ask for the same memory (rule LM2). PURE. */
import type { NewMemory } from "../../ports/long-term-memory.ts";

type Asked = Pick<NewMemory, "content" | "metadata" | "supersedes">;

/** As a database stores it: it replaces half of a surrogate pair, so that a retry would be another text. */
export const wellFormed = ({ content, metadata }: Pick<Asked, "content" | "metadata">): Pick<Asked, "content" | "metadata"> => ({
  content: content.toWellFormed(),
  metadata: Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name.toWellFormed(), value.toWellFormed()])),
});

export function isSameMemory(one: Asked, other: Asked): boolean {
  const [a, b] = [wellFormed(one), wellFormed(other)];
  const names = Object.keys(a.metadata);
  return (
    a.content === b.content &&
    one.supersedes === other.supersedes &&
    names.length === Object.keys(b.metadata).length &&
    names.every((name) => Object.hasOwn(b.metadata, name) && a.metadata[name] === b.metadata[name])
  );
}
