import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { planOf } from "./quick.ts";

const plan = (...changed: string[]): ReturnType<typeof planOf> => planOf(changed, (path) => !path.includes("deleted"));
const lanes = (...changed: string[]): string[] => [...plan(...changed).lanes];

describe("what --quick runs", () => {
  it("documents change no lane", () => {
    assert.deepEqual(lanes("README.md", "gateway/SPEC.md", "crates/gsv-link/README.md"), []);
  });

  it("each part of the product runs the lanes that test it", () => {
    assert.deepEqual(lanes("gateway/src/app/worker.ts"), ["workerd", "bundles", "e2e"]);
    assert.deepEqual(lanes("gateway/test/session/support.ts"), ["workerd"]);
    assert.deepEqual(lanes("channels/discord/src/map-inbound.ts"), ["bundles", "channels", "e2e"]);
    assert.deepEqual(lanes("channels/fakes/discord/fake-discord.ts"), ["channels"]);
    assert.deepEqual(lanes("protocol/gen/types.ts"), ["workerd", "bundles", "channels", "e2e"]);
    assert.deepEqual(lanes("cli/src/main.rs"), ["clippy", "rust", "e2e"]);
    assert.deepEqual(lanes("gateway/src/session/machine/state.ts", "gateway/test/sim/world.ts"), ["workerd", "bundles", "e2e"]);
  });

  it("Rust tests run for the changed packages and for those that depend on them", () => {
    assert.deepEqual(plan("crates/gsv-tools/src/read.rs").packages, ["gsv-tools", "gsv-node", "gsv-napi", "gsv"]);
    assert.deepEqual(plan("cli/src/main.rs").packages, ["gsv"]);
    const all = ["gsv-protocol", "gsv-link", "gsv-sandbox", "gsv-tools", "gsv-node", "gsv-napi", "gsv"];
    assert.deepEqual(plan("Cargo.lock").packages, all);
  });

  it("the package for JavaScript is tested when it or the node changes, with its addon", () => {
    for (const path of ["crates/gsv-napi/src/addon.rs", "crates/gsv-napi/js/node.ts", "crates/gsv-node/src/node.rs"])
      assert.deepEqual(lanes(path), ["clippy", "rust", "e2e", "napi"]);
    assert.deepEqual(lanes("crates/gsv-link/src/link.rs"), ["clippy", "rust", "e2e"]);
    const changed = plan("crates/gsv-napi/test/node.test.ts");
    assert.deepEqual([changed.touched.node, [...changed.lanes]], [[], ["napi"]]);
  });

  it("changed test files run by themselves, with the runner that they need; deleted ones do not", () => {
    const {
      touched,
      lanes: chosen,
      e2e,
    } = plan(
      "gateway/test/session/store.test.ts",
      "gateway/test/models/requests.test.ts",
      "gateway/src/session/intake.unit.test.ts",
      "channels/discord/test/deleted.e2e.test.ts",
      "channels/discord/test/idle.slow.test.ts",
      "test/e2e/crash.test.ts",
    );
    assert.deepEqual(touched.workerd, ["gateway/test/session/store.test.ts"]);
    assert.deepEqual(touched.node, ["gateway/test/models/requests.test.ts", "gateway/src/session/intake.unit.test.ts"]);
    assert.deepEqual(e2e, ["test/e2e/crash.test.ts"]);
    assert.deepEqual([...chosen], ["e2e"]);
  });

  it("a changed product is tried end to end with one message", () => {
    assert.deepEqual(plan("gateway/src/app/worker.ts").e2e, ["test/e2e/first-message.test.ts"]);
  });
});
