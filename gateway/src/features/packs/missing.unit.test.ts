/** Warnings about packs that are on and cannot work yet. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PackDefinition } from "../../packs/pack.ts";
import { missingOfPacks } from "./missing.ts";

const any = { doc: "A value.", problem: () => undefined };
const PACK: PackDefinition = {
  name: "shop",
  doc: "A pack.",
  settings: { address: any },
  secrets: { token: any },
  load: () => Promise.reject(new Error("not loaded here")),
};
test("[PK2] a pack that is turned on without its settings is a warning that names them and how to set them", () => {
  const on = { packs: { enabled: ["shop"] } };
  const said = missingOfPacks("packs.enabled", on, [PACK]);
  assert.deepEqual(said, [
    "The pack shop is on, and its tools fail until packs.settings.shop.address and packs.secrets.shop.token are set: `gsv config set packs.settings.shop.address VALUE`, `gsv config set packs.secrets.shop.token -`.",
  ]);
  const half = { packs: { ...on.packs, settings: { shop: { address: "x" } } } };
  assert.match(missingOfPacks("packs", half, [PACK]).join(), /until packs\.secrets\.shop\.token is set/);
  const whole = { packs: { ...half.packs, secrets: { shop: { token: "t" } } } };
  assert.deepEqual(missingOfPacks("packs.enabled", whole, [PACK]), []);
  assert.deepEqual(missingOfPacks("packs.enabled", { packs: { enabled: [] } }, [PACK]), []);
  assert.deepEqual(missingOfPacks("model.id", on, [PACK]), []);
});
test("[PK2] a setting or a secret that is taken from a pack that is on is a warning, and of no other pack", () => {
  const now = { packs: { enabled: ["shop"], settings: { shop: { address: "x" } } } };
  for (const path of ["packs.secrets.shop.token", "packs.secrets.shop", "packs.secrets", "packs.settings.shop.address"])
    assert.match(missingOfPacks(path, now, [PACK]).join(), /until packs\.secrets\.shop\.token is set/, path);
  assert.deepEqual(missingOfPacks("packs.secrets.other.token", now, [PACK]), []);
  assert.deepEqual(missingOfPacks("packs.secrets.shop.token", { packs: { ...now.packs, enabled: [] } }, [PACK]), []);
});
