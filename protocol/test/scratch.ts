/** A small contract with every feature of the vocabulary in it, for tests of the generator itself. */
import { buildModel } from "../../scripts/codegen/build-model.ts";
import type { Model } from "../../scripts/codegen/model.ts";

type Vocabulary = typeof import("../src/dsl.ts");
let instances = 0;

/** A vocabulary with registries of its own, untouched by the real contract. */
export async function freshVocabulary(): Promise<Vocabulary> {
  instances++;
  return (await import(String(new URL(`../src/dsl.ts?scratch=${instances}`, import.meta.url)))) as Vocabulary;
}

/** Defines the scratch contract, in either order. */
export function defineScratch({ enumOf, error, event, id, limit, lookup, method, struct, t, tagged }: Vocabulary, reversed = false): void {
  const Key = id("Key", "A key.", { maxLength: 8, pattern: "^[a-z]+$" });
  const Color = enumOf("Color", "A color.", ["red", "dark-blue", "2-tone"]);
  const ref = (name: string): typeof Key => ({ ...Key, $ref: name });
  const definitions = [
    (): unknown =>
      struct("Tree", "A tree.", {
        name: Key,
        kids: t.array(ref("Tree"), 3),
        left: t.optional(ref("Tree")),
        byName: t.optional(t.map(ref("Tree"))),
      }),
    (): unknown =>
      struct("Everything", "One of each.", {
        type: t.string(16),
        self: t.bool(),
        small: t.int(0, 255),
        medium: t.int(0, 65535),
        large: t.int(0, 4294967295),
        huge: t.int(),
        signed: t.int(-5, 5),
        ratio: t.number(0, 1),
        color: Color,
        free: t.json(),
        bag: t.object(),
        scores: t.map(t.int(0, 10)),
        fixed: t.literal("only this"),
        version: t.literal(1),
        "odd-name": t.optional(t.string(4)),
        qrURL: t.optional(t.string(4, { description: "A link with */ in it" })),
        maybe: t.optional(t.json()),
      }),
    (): unknown =>
      tagged("Shape", "A shape.", "kind", {
        dot: {},
        circle: { radius: t.number(0) },
        "many-sided": { sides: t.array(t.int(1, 100), 8), of: t.optional(ref("Shape")) },
      }),
    (): unknown => struct("Login", "Credentials.", { token: t.optional(t.string(64)), user: t.optional(t.string(64)) }),
    (): unknown =>
      error("thing.missing", {
        code: 404,
        blame: "caller",
        retryable: false,
        http: 404,
        exit: 1,
        text: "There is no such thing.",
        hint: "Get another.",
      }),
    (): unknown =>
      lookup("colorOf", { doc: "The color of a thing.", result: Color, rows: { sky: "2-tone", rose: "red" }, otherwise: "dark-blue" }),
    (): unknown => limit("thingBytes", 1000, "Largest thing."),
    (): unknown => limit("thingTimeoutMs", 1000, "Time for a thing."),
  ];
  for (const define of reversed ? [...definitions].reverse() : definitions) define();
  const methods = [
    (): void =>
      method("thing.get", {
        doc: "Gets a thing.",
        params: { key: Key, depth: t.optional(t.int(0, 9)) },
        result: { tree: ref("Tree"), note: t.optional(t.text()) },
        callers: ["client", "node"],
        scope: "operate",
        audit: { target: "key" },
        errors: ["thing.missing"],
        idempotent: true,
      }),
    (): void => method("thing.ping", { doc: "Answers.", result: ref("Everything"), callers: ["client"], scope: "read", audit: "none" }),
    (): void => event("thing.drawn", { doc: "A thing was drawn.", payload: { shape: ref("Shape"), at: t.time() }, to: ["client", "node"] }),
  ];
  for (const define of reversed ? [...methods].reverse() : methods) define();
}

export async function scratchModel(reversed = false): Promise<Model> {
  const vocabulary = await freshVocabulary();
  defineScratch(vocabulary, reversed);
  return buildModel(vocabulary);
}
