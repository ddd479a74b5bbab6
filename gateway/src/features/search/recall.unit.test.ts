/** [F67] How many of 60 questions about a long dialogue find the line that answers them, in memory files and in transcripts. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { dialogue } from "../../../test/features/search/recall-data.ts";
import { database } from "../../../test/features/search/recall-measure.ts";
import type { Find } from "./index-query.ts";
import { IndexStore } from "./index-store.ts";
import { parseQuery } from "./query.ts";
import { dayOfName, dayWords, linePieces, withoutMarks } from "./text.ts";

/** The answer is one of the first five hits, or is shown with one of them. A search for all words shows next to none. */
const SHOWN = 0.9;
/** The answer itself is one of the first five hits. */
const HIT = 0.65;
const { evenings, questions } = dialogue(67);

function indexed(kind: "workspace" | "archives"): IndexStore {
  const store = new IndexStore(database());
  store.prepare("main");
  const nameOf = (date: string): string => (kind === "workspace" ? `memory/${date}.md` : `sessions/${date}.jsonl.gz`);
  store.sources.listed(kind, new Map(evenings.map(({ date }) => [nameOf(date), { etag: "1" }])));
  for (const { date, lines } of evenings) {
    const name = nameOf(date);
    const source = store.sources.one(kind, name);
    assert.ok(source);
    const at = Date.parse(`${date}T19:00:00Z`);
    const docs =
      kind === "workspace"
        ? linePieces(`# ${date}\n\n${lines.join("\n")}\n`, 2_000).map(({ line, text }) => ({
            position: line,
            at,
            text,
            day: dayOfName(name),
          }))
        : lines.map((text, position) => ({ position, role: "user", at, text, day: dayWords(at) }));
    store.add(source.id, docs, { state: "done", sessionKey: "agent:main:main" });
  }
  return store;
}

describe("[F67] [SE1] [SE3] questions find their answers", () => {
  for (const kind of ["workspace", "archives"] as const) {
    test(`in ${kind === "workspace" ? "daily files" : "transcripts"}`, () => {
      const store = indexed(kind);
      const memoryOf: Find["memoryOf"] = { keys: ["agent:main:main"], prefix: "agent:main:cli:dm:" };
      let shown = 0;
      let hit = 0;
      for (const { text, evidence } of questions) {
        const match = parseQuery(text);
        assert.ok(match.ok);
        const hits = store.find({ match: match.value, sources: ["workspace", "archives"], memoryOf, limit: 5, offset: 0 });
        const texts = hits.map(({ marked }) => withoutMarks(marked));
        if (texts.includes(evidence)) hit++;
        if ([...texts, ...hits.flatMap(({ before, after }) => [...before, ...after])].includes(evidence)) shown++;
      }
      const of = (count: number): string => `${count} of ${questions.length}`;
      console.log(`any@5 over ${evenings.length} evenings in ${kind}: shown ${of(shown)}, itself a hit ${of(hit)}`);
      assert.equal(questions.length, 60);
      assert.ok(shown / questions.length >= SHOWN, `shown ${of(shown)}`);
      assert.ok(hit / questions.length >= HIT, `hit ${of(hit)}`);
    });
  }
});
