import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SECRET_PATHS } from "../../../../protocol/gen/config.ts";
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import { type Cell, fieldsOf, resolveCell } from "../../../../protocol/runtime/cells.ts";
import { effective } from "./effective.ts";
import { hasSameReceivers, receiversOf } from "./receivers.ts";
import { setAt } from "./tree.ts";

const FOREIGN = "https://foreign.example/v1";
const same = (path: readonly string[], before: GsvConfig, next: GsvConfig): boolean =>
  hasSameReceivers(path, effective(before), effective(next));

/** Settings whose text is an address or a part of one, by the contract. */
function* addresses(cell: Cell, path: readonly string[]): Generator<readonly string[]> {
  const at = resolveCell(cell);
  if (at[0] === "struct") for (const field of fieldsOf(at[1])) yield* addresses(field.cell, [...path, field.name]);
  else if (at[0] === "map") yield* addresses(at[1], [...path, "mine"]);
  else if (at[0] === "string" && (at[3]?.startsWith("^https?://") === true || path[0] === "cloud")) yield path;
}

describe("[MV17] where secrets are sent", () => {
  test("is known for each secret setting of the contract", () => {
    for (const pattern of SECRET_PATHS) {
      const path = pattern.split(".").map((name) => (name === "*" ? "mine" : name));
      assert.notEqual(receiversOf(path, effective({})), undefined, pattern);
    }
    assert.equal(receiversOf(["other", "secret"], effective({})), undefined);
    assert.equal(same(["other", "secret"], {}, {}), false, "a secret without a known receiver is not kept");
  });

  test("each address of the contract is one of a secret's", () => {
    const clouds = ["cloudflare-workers-ai", "cloudflare-ai-gateway", "amazon-bedrock", "azure-openai-responses", "google-vertex"];
    const secrets = [
      ...["mine", "openai", ...clouds].map((name) => ["apiKeys", name]),
      ["model", "headers", "x"],
      ["telemetry", "otlp", "headers", "x"],
    ];
    const base: GsvConfig = {
      model: { provider: "mine" },
      providers: { mine: { baseUrl: "https://own.example/v1", wire: "openai-completions" } },
      cloud: { cloudflareAccountId: "a", cloudflareGatewayId: "b", vertexProject: "c", vertexLocation: "eu" },
    };
    const found = [...addresses(["ref", "GsvConfig"], [])];
    assert.deepEqual(
      found.map((path) => path.join(".")).filter((path) => !path.startsWith("cloud.")),
      ["model.baseUrl", "providers.mine.baseUrl", "transcription.baseUrl", "memory.embeddings.baseUrl", "telemetry.otlp.endpoint"],
    );
    assert.ok(found.length > 5);
    for (const path of found) {
      const next = setAt(base, path, path[0] === "cloud" ? "foreign" : FOREIGN, () => ({})) as GsvConfig;
      assert.ok(
        secrets.some((secret) => !same(secret, base, next)),
        `${path.join(".")} sends no secret elsewhere`,
      );
    }
  });

  test("a key goes on when its address is the same, or is no longer used", () => {
    const own: GsvConfig = { model: { provider: "mine", baseUrl: FOREIGN } };
    assert.ok(same(["apiKeys", "openai"], {}, { model: { provider: "openai", id: "gpt-5" } }));
    assert.ok(same(["apiKeys", "mine"], own, own));
    assert.ok(same(["apiKeys", "mine"], own, {}));
    assert.ok(same(["apiKeys", "anthropic"], {}, own), "of another provider");
    assert.ok(same(["model", "headers", "x"], own, own));
  });

  test("a key of one's own server does not go to the built-in address, nor headers to another provider", () => {
    const own: GsvConfig = { model: { provider: "anthropic", baseUrl: FOREIGN } };
    assert.equal(same(["apiKeys", "anthropic"], own, { model: { provider: "anthropic" } }), false);
    assert.equal(same(["model", "headers", "x"], { model: { provider: "anthropic" } }, { model: { provider: "groq" } }), false);
  });

  test("an address that is not used now counts: a later choice would use it", () => {
    const shadowed: GsvConfig = {
      model: { provider: "openai", baseUrl: "https://own.example/v1" },
      providers: { openai: { baseUrl: FOREIGN, wire: "openai-completions" } },
    };
    assert.equal(same(["apiKeys", "openai"], { model: { provider: "openai", baseUrl: "https://own.example/v1" } }, shadowed), false);
    assert.equal(same(["apiKeys", "openai"], {}, { memory: { embeddings: { baseUrl: FOREIGN } } }), false, "while the table is used");
  });

  test("the secrets of a pack go by all of its settings", () => {
    const secret = ["packs", "secrets", "commerce", "token"];
    const shop = (name: string): GsvConfig => ({ packs: { settings: { commerce: { shop: name } } } });
    assert.ok(same(secret, shop("a"), shop("a")));
    assert.equal(same(secret, shop("a"), shop("b")), false);
    assert.ok(same(secret, {}, { packs: { settings: { other: { shop: "b" } } } }));
  });
});
