/** What a refused request costs. */
import assert from "node:assert/strict";
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { after, before, describe, mock, test } from "node:test";
import type { HookForm } from "../../../../protocol/gen/types.ts";
import { Door, type DoorPorts } from "./door.ts";
import { sign } from "./signature.ts";

const NOW = 1_700_000_000_000;
const FORMS: readonly HookForm[] = ["standard", "github", "stripe", "bearer"];
const SECRET = `whsec_${btoa("k".repeat(32))}`;
/** One hook of each form. */
const door = (): Door =>
  new Door({
    store: {
      find: (name: string) => (FORMS.includes(name as HookForm) ? { name, body: { form: name } } : undefined),
      countRefused: () => undefined,
    },
    secrets: { open: () => SECRET },
    audit: { append: () => undefined },
    background: () => undefined,
    now: () => NOW,
  } as unknown as DoorPorts);

describe("[HK2] [S3] a refused request", () => {
  const real = crypto.createHmac;
  let digests = 0;
  before(() => {
    mock.method(crypto, "createHmac", (...given: Parameters<typeof real>) => {
      digests++;
      return real(...given);
    });
    syncBuiltinESMExports();
  });
  after(() => {
    mock.restoreAll();
    syncBuiltinESMExports();
  });

  test("costs the same work at each hook and at a name that no hook has, whatever proofs it carries", async () => {
    const body = new TextEncoder().encode("{}");
    const proofs = [{ authorization: "Bearer x" }, ...FORMS.map((form) => sign(form, new Uint8Array(32), "d1", NOW, "{}")), {}];
    const both = proofs.map((headers) => ({ authorization: "Bearer x", ...headers }));
    for (const headers of [...proofs, ...both]) {
      const costs: number[] = [];
      for (const name of [...FORMS, "absent"]) {
        const at = digests;
        const taken = await door().take({ name, headers: Object.entries(headers), body });
        assert.equal(taken.ok ? "taken" : taken.error.reason, "hook.refused", name);
        costs.push(digests - at);
      }
      assert.equal(new Set(costs).size, 1, `${Object.keys(headers).join(" ")}: ${costs.join(" ")}`);
    }
  });
});
