import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { DefinedAgent } from "../ports/agents.ts";
import { layersOf, overridden } from "./defined-layers.ts";

const sha = (text: string): Promise<string> => Promise.resolve(`sha of ${text}`);
const defined = { coreSha256: "sha of role", characteristicsSha256: "sha of tone" } as DefinedAgent;
const prompt = (core: string | undefined, characteristics?: string) => ({
  sections: [
    { id: "base", title: "", layer: 1 as const, text: "base" },
    ...(core === undefined ? [] : [{ id: "core", title: "", layer: 1 as const, text: core }]),
    ...(characteristics === undefined ? [] : [{ id: "characteristics", title: "", layer: 2 as const, text: characteristics }]),
  ],
});

describe("[AD10] the sections of a definition", () => {
  test("are those that were stored, and stand in the prompt", async () => {
    assert.equal(await overridden("base role tone", layersOf(prompt("role", "tone"), defined), sha), undefined);
    assert.equal(
      await overridden("anything", layersOf(prompt("x"), undefined), sha),
      undefined,
      "without a definition nothing is compared",
    );
  });
  test("are named when one is another, is missing, is too much, or has left the prompt", async () => {
    const broken = (system: string, sections: ReturnType<typeof prompt>, of: DefinedAgent = defined) =>
      overridden(system, layersOf(sections, of), sha);
    assert.equal(await broken("base rule tone", prompt("rule", "tone")), "core");
    assert.equal(await broken("base role", prompt("role")), "characteristics");
    assert.equal(await broken("base tone", prompt(undefined, "tone")), "core");
    assert.equal(await broken("base role tone", prompt("role", "tone"), { coreSha256: "sha of role" } as DefinedAgent), "characteristics");
    assert.equal(await broken("base role", prompt("role", "tone")), "characteristics");
  });
});
