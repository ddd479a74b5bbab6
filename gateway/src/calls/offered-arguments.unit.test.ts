import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SandboxProfile } from "../../../protocol/gen/types.ts";
import { notOffered } from "./offered-arguments.ts";

const bash = (sandboxes: readonly string[] | undefined): object => ({
  type: "object",
  properties: { command: { type: "string" }, ...(sandboxes === undefined ? {} : { sandbox: { type: "string", enum: sandboxes } }) },
  required: ["command"],
});
const told = (schema: unknown, args: Record<string, unknown>, sandbox?: SandboxProfile | "none reported"): string | undefined =>
  notOffered({ name: "lap__Bash", schema, args, sandbox: sandbox === "none reported" ? undefined : (sandbox ?? "workspace") });

describe("[AP17] a call that is refused in any case", () => {
  it("leaves a sandbox that no command may leave, or asks for hosts where none can be let through", () => {
    const off = { command: "pwd", sandbox: "off" };
    const hosts = { command: "pwd", sandbox: "workspace+net", hosts: ["example.org"] };
    assert.match(told(bash(undefined), off) ?? "", /^Not run: the owner of the machine lets no command leave its sandbox/);
    assert.match(told(bash(["off"]), hosts) ?? "", /lets no command ask for hosts.*set `sandbox` to `off` and leave `hosts` out/);
    // [SB9] Bubblewrap could let hosts through: the owner does not, and a command outside the sandbox is no answer to that.
    const forbidden = notOffered({ name: "lap__Bash", schema: bash(["off"]), args: hosts, sandbox: "workspace", tier: "bubblewrap" });
    assert.match(forbidden ?? "", /lets commands reach no hosts\..*change `network = "none"` in node\.toml/);
    assert.doesNotMatch(forbidden ?? "", /`off`/);
    for (const [sandbox, tier] of [
      ["strict", "bubblewrap"],
      ["workspace", "landlock"],
    ] as const)
      assert.match(notOffered({ name: "lap__Bash", schema: bash(["off"]), args: hosts, sandbox, tier }) ?? "", /set `sandbox` to `off`/);
    assert.match(
      told(bash(["off", "workspace+net"]), { command: "pwd", sandbox: "none" }) ?? "",
      /^Not run: lap__Bash takes no `sandbox` of `none`\. Make the call again without it, or with off or workspace\+net\.$/,
    );
    for (const args of [off, hosts]) assert.equal(told(bash(["off", "workspace+net"]), args), undefined);
    // A machine without a sandbox offers none, and takes this one.
    for (const sandbox of ["off", "none reported"] as const) assert.equal(told(bash(undefined), off, sandbox), undefined);
    for (const args of [hosts, { command: "pwd", sandbox: "read-only" }]) {
      assert.match(told(bash(undefined), args, "off") ?? "", /^Not run: this machine has no sandbox.*without `sandbox` and `hosts`\.$/);
      assert.equal(told(bash(undefined), args, "none reported"), undefined);
    }
    assert.equal(told(bash(undefined), { command: "pwd", sandbox: "read-only" }), undefined);
    for (const schema of [{}, { properties: {} }, undefined, "text"]) assert.equal(told(schema, off), undefined);
  });
  it("has not all that its tool needs", () => {
    const schema = { properties: { source: {}, destination: {} }, required: ["source", "destination"] };
    assert.match(told(schema, { from: "a" }) ?? "", /^Not run: lap__Bash needs `source`, `destination`\. Make the call again/);
    assert.match(told(schema, { source: "a" }) ?? "", /needs `destination`\./);
    assert.equal(told(schema, { source: "a", destination: "b" }), undefined);
    assert.match(told({ required: ["toString"] }, {}) ?? "", /`toString`/);
  });
});
