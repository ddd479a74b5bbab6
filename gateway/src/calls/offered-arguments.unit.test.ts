import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { asCapability, type NodeEntry, type NodeSandbox, type SandboxProfile } from "../../../protocol/gen/types.ts";
import { missingText, notOffered } from "./offered-arguments.ts";

const bash = (sandboxes: readonly string[] | undefined): object => ({
  type: "object",
  properties: { command: { type: "string" }, ...(sandboxes === undefined ? {} : { sandbox: { type: "string", enum: sandboxes } }) },
  required: ["command"],
});
const lap = (sandbox: NodeSandbox | undefined, fileRoots?: string[]): Pick<NodeEntry, "sandbox" | "fileRoots" | "toolCapabilities"> => ({
  ...(sandbox === undefined ? {} : { sandbox }),
  ...(fileRoots === undefined ? {} : { fileRoots }),
  toolCapabilities: {
    Write: [asCapability("filesystem.write")],
    Edit: [asCapability("filesystem.edit")],
    Bash: [asCapability("shell.exec")],
    Mine: [],
  },
});
const call = (schema: unknown, args: Record<string, unknown>, sandbox: NodeSandbox | undefined): string | undefined =>
  notOffered({ name: "lap__Bash", tool: "Bash", schema, args, machine: lap(sandbox) });
const told = (schema: unknown, args: Record<string, unknown>, profile?: SandboxProfile | "none reported"): string | undefined =>
  call(schema, args, profile === "none reported" ? undefined : { profile: profile ?? "workspace" });

describe("[AP17] a call that is refused in any case", () => {
  it("leaves a sandbox that no command may leave, or asks for hosts where none can be let through", () => {
    const off = { command: "pwd", sandbox: "off" };
    const hosts = { command: "pwd", sandbox: "workspace+net", hosts: ["example.org"] };
    assert.match(told(bash(undefined), off) ?? "", /^Not run: the owner of the machine lets no command leave its sandbox/);
    assert.match(told(bash(["off"]), hosts) ?? "", /lets no command ask for hosts.*set `sandbox` to `off` and leave `hosts` out/);
    // [SB9] Bubblewrap could let hosts through: the owner does not, and a command outside the sandbox is no answer to that.
    const forbidden = call(bash(["off"]), hosts, { profile: "workspace", tier: "bubblewrap" });
    assert.match(forbidden ?? "", /lets commands reach no hosts\..*change `network = "none"` in node\.toml/);
    assert.doesNotMatch(forbidden ?? "", /`off`/);
    for (const [profile, tier] of [
      ["strict", "bubblewrap"],
      ["workspace", "landlock"],
    ] as const)
      assert.match(call(bash(["off"]), hosts, { profile, tier }) ?? "", /set `sandbox` to `off`/);
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
  it("asks for an address, or the machine itself, that its owner has not listed", () => {
    const ask = (hosts: readonly string[], addresses?: string[]): string | undefined =>
      call(
        bash(["off", "workspace+net"]),
        { command: "pwd", sandbox: "workspace+net", hosts },
        { profile: "workspace", ...(addresses === undefined ? {} : { addresses }) },
      );
    for (const host of ["10.0.0.7", "10.0.0.7:80", "[::1]:3000", "LOCALHOST", "localhost.:3000", "a.localhost", "*.b.localhost:80"]) {
      assert.match(
        ask(["example.org", host], []) ?? "",
        /^Not run: the owner of the machine has not listed .* No address is listed there/,
        host,
      );
      // A machine of an earlier version does not say what it lists.
      assert.equal(ask(["example.org", host]), undefined, host);
    }
    const listed = ["10.0.0.7:80", "[::1]:3000", "localhost:3000", "[::ffff:1.2.3.4]:80"];
    assert.match(
      ask(["10.0.0.7", "localhost"], listed) ?? "",
      /has not listed 10\.0\.0\.7, localhost, .* Listed are 10\.0\.0\.7:80, .*: name one of these exactly so/,
    );
    for (const host of [
      ...listed,
      "[0:0:0:0:0:0:0:1]:3000",
      "[::FFFF:1.2.3.4]:80",
      "example.org",
      "*.localhost.example",
      "a.localhost.example",
      "notlocalhost",
    ])
      assert.equal(ask(["example.net", host], listed), undefined, host);
    // All names of a machine for itself are one server, which a name reaches; an address is asked for as it is listed.
    for (const other of ["127.0.0.1:3000", "127.0.0.2:3000", "[::1]:3000"])
      assert.equal(ask(["localhost:3000"], [other]), undefined, other);
    assert.match(ask(["127.0.0.1:3000"], ["localhost:3000"]) ?? "", /has not listed 127/);
    assert.match(ask(["localhost:3001"], ["127.0.0.1:3000"]) ?? "", /has not listed localhost:3001/);
    const many = Array.from({ length: 100 }, (_, index) => `10.0.1.${index}:80`);
    assert.match(ask(["10.0.0.7"], many) ?? "", /10\.0\.1\.9:80 and 90 more: name/);
  });
  it("changes a file outside the only folder that its machine's tools use", () => {
    const change = (path: unknown, fileRoots?: string[], tool = "Write"): string | undefined =>
      notOffered({ name: `lap__${tool}`, tool, schema: {}, args: { path }, machine: lap(undefined, fileRoots) });
    const roots = ["/home/user/ws", "/ws"];
    for (const path of ["/etc/hosts", "../a", "a/../../ws/a", "/home/user/ws2/a", "/ws/../etc", "/"])
      assert.match(change(path, roots) ?? "", /^Not run: the file is outside of "\/home\/user\/ws".*`--allow-outside`\.$/, path);
    for (const path of ["~/a", "~a"]) assert.match(change(path, roots) ?? "", /do not expand `~`.* below "\/home\/user\/ws"\.$/, path);
    for (const path of ["a", "./a/../b", "..a", "/home/user/ws/a", "/ws", "/ws/b/../c", "//home/./user/ws/a", "", 5, undefined])
      assert.equal(change(path, roots), undefined, String(path));
    // They use every folder, or nothing is known; a tool of the machine's owner reads its arguments in its own way.
    for (const [known, tool] of [
      [undefined, "Edit"],
      [roots, "Mine"],
      [roots, "toString"],
    ] as const)
      assert.equal(change("/etc/hosts", known === undefined ? undefined : [...known], tool), undefined);
    assert.equal(change("/etc/hosts", ["/"], "Edit"), undefined);
    // A machine that is not connected may have another folder when it is back.
    const away = {
      name: "lap__Write",
      tool: "Write",
      schema: {},
      args: { path: "/etc/hosts" },
      machine: lap(undefined, roots),
      isAway: true,
    };
    assert.equal(notOffered(away), undefined);
  });
});

it("[PO11] a person is told which arguments a call lacks, and which its tool does not have", () => {
  const schema = { properties: { command: {}, workdir: {} }, required: ["command"] };
  assert.equal(
    missingText("lap__Bash", schema, { cmd: "echo hi" }),
    "The tool lap__Bash needs `command`. It does not have `cmd`: correct the name, or leave it out.",
  );
  assert.equal(missingText("lap__Bash", schema, {}), "The tool lap__Bash needs `command`.");
  assert.equal(missingText("lap__Bash", schema, { command: "x", other: 1 }), undefined);
  assert.equal(missingText("lap__Bash", {}, { cmd: "x" }), undefined);
});
