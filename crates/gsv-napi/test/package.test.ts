/** The package as it is packed: installed without a network, loaded, typed, and run as its README says (rules NJ11 and NJ12). */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { nativeTypes } from "../native-types.ts";
import { Machine } from "./support.ts";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const ROOT = join(PACKAGE, "..", "..");
const example = (): string => {
  const [, code] = /^```js\n(.*?)^```/ms.exec(readFileSync(join(PACKAGE, "README.md"), "utf8")) ?? [];
  assert(code !== undefined, "the README has an example");
  return code;
};

describe("the packed package", () => {
  const folder = mkdtempSync(join(tmpdir(), "gsv package "));
  const project = join(folder, "project");
  const machine = new Machine();
  let packed: readonly string[] = [];

  /** npm with a cache that is empty, in a network that answers nothing. */
  const npm = (cwd: string, ...args: string[]): string => {
    const { status, stdout, stderr } = spawnSync("npm", [...args, "--offline", "--no-audit", "--no-fund", "--loglevel=error"], {
      cwd,
      encoding: "utf8",
      env: { ...process.env, npm_config_cache: join(folder, "cache"), npm_config_registry: "http://127.0.0.1:9/" },
    });
    assert.equal(status, 0, `npm ${args.join(" ")}:\n${stdout}\n${stderr}`);
    return stdout;
  };
  before(async () => {
    for (const name of ["packs", "project", "cache"]) mkdirSync(join(folder, name));
    const [made] = JSON.parse(npm(PACKAGE, "pack", "--json", "--pack-destination", join(folder, "packs"))) as {
      filename: string;
      files: { path: string }[];
    }[];
    assert(made !== undefined);
    packed = made.files.map(({ path }) => path);
    writeFileSync(join(project, "package.json"), '{ "name": "lamp", "private": true, "type": "module" }\n');
    npm(project, "install", join(folder, "packs", made.filename));
    await machine.up();
  });
  after(async () => {
    await machine.end();
    rmSync(folder, { recursive: true, force: true });
  });

  it("[NJ12] has its addon, its JavaScript, its types and its README, and nothing that runs at install", () => {
    const text = JSON.parse(readFileSync(join(project, "node_modules", "@gsv", "node", "package.json"), "utf8")) as Record<string, object>;
    assert.deepEqual([text["dependencies"], text["optionalDependencies"], text["peerDependencies"]], [undefined, undefined, undefined]);
    assert.deepEqual(Object.keys(text["scripts"] ?? {}).sort(), ["build", "test"]);
    assert.equal(packed.filter((path) => path.endsWith(".node")).length, 1);
    for (const path of packed) assert.match(path, /^(?:README\.md|package\.json|dist\/(?:gen\/)?[\w-]+(?:\.d\.ts|\.js|\.[\w-]+\.node))$/);
    for (const path of ["dist/index.js", "dist/index.d.ts", "README.md"]) assert(packed.includes(path), path);
    assert.deepEqual(
      readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith(".")),
      ["@gsv"],
      "no other package was installed",
    );
  });

  it("[NJ12] the README's example has 20 lines, and runs as it stands", async () => {
    const code = example();
    assert(code.trim().split("\n").length <= 20, `${code.trim().split("\n").length} lines`);
    const [workspace, stateDir] = ["files", "state"].map((name) => join(folder, "srv", name)) as [string, string];
    for (const path of [workspace, stateDir]) mkdirSync(path, { recursive: true, mode: 0o700 });
    writeFileSync(join(project, "lamp.js"), code.replace("/srv/lamp/files", workspace).replace("/srv/lamp/state", stateDir));
    const admin = await machine.client();
    const { token } = (await admin.call("tokens.create", { kind: "node", nodeId: "lamp" })) as { token: string };
    const env = { ...machine.env(), GSV_URL: machine.url, GSV_TOKEN: token };
    const child = spawn(process.execPath, ["lamp.js"], { cwd: project, env, stdio: "pipe" });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    try {
      await machine.online("lamp", () => assert.equal(child.exitCode, null, output));
      await admin.call("config.set", { path: "toolApproval.defaultDecision", value: "allow" });
      const { result } = await admin.call("tool.invoke", { tool: "lamp__Lights", args: { room: "kitchen", on: true } });
      assert.equal(result, "The lights in the kitchen are on.");
      const ended = once(child, "close");
      child.kill("SIGTERM");
      assert.deepEqual(await ended, [0, null], output);
    } finally {
      child.kill("SIGKILL");
    }
  });

  it("[NJ11] [NJ12] its types are complete: a strict program compiles, and a wrong one does not", () => {
    const compilerOptions = {
      strict: true,
      module: "nodenext",
      target: "es2024",
      noEmit: true,
      skipLibCheck: false,
      types: ["node"],
      typeRoots: [join(ROOT, "node_modules", "@types")],
    };
    const options = '{ id: "a", url: "ws://x", workspace: "/w", stateDir: "/s", tools: { rust: ["Read"] } }';
    const good = `import { GsvError, Node, type ToolContext } from "@gsv/node";
      const node = new Node(${options});
      node.tool<{ on: boolean }>({ name: "A", description: "a", inputSchema: { type: "object" }, run: ({ on }, { signal }: ToolContext) => [on, signal.aborted] });
      node.on("call", ({ outcome }) => console.log(outcome === "unknown"));
      try { await node.connect(); } catch (error) { if (error instanceof GsvError && error.reason === "auth.required") console.log(error.hint); }`;
    const wrong = [
      ['["Read"]', '["Raed"]'],
      ['"unknown"', '"unclear"'],
      ["[on, signal.aborted]", "signal"],
      ['"call"', '"calls"'],
    ] as const;
    const programs = new Map([["good.ts", good], ...wrong.map(([from, to], at) => [`wrong-${at}.ts`, good.replace(from, to)] as const)]);
    for (const [name, text] of programs) writeFileSync(join(project, name), text);
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: [...programs.keys()] }));
    const { stdout } = spawnSync(process.execPath, [join(ROOT, "node_modules", "typescript", "bin", "tsc"), "-p", project], {
      cwd: project,
      encoding: "utf8",
    });
    const bad = new Set([...stdout.matchAll(/^([\w./@-]+)\(\d+,\d+\): error/gm)].map(([, name]) => name));
    assert.deepEqual(
      [...bad].sort(),
      [...programs.keys()].filter((name) => name !== "good.ts"),
      stdout,
    );
  });

  it("[NJ12] an addon that is missing is named, with what to do", () => {
    const installed = join(project, "node_modules", "@gsv", "node", "dist");
    const addon = readdirSync(installed).find((name) => name.endsWith(".node"));
    assert(addon !== undefined);
    const dist = join(folder, "dist");
    mkdirSync(dist);
    for (const name of readdirSync(installed).filter((it) => it.endsWith(".js")))
      writeFileSync(join(dist, name), readFileSync(join(installed, name)));
    mkdirSync(join(dist, "gen"));
    writeFileSync(join(dist, "gen", "contract.js"), readFileSync(join(installed, "gen", "contract.js")));
    writeFileSync(join(dist, "package.json"), '{ "type": "module" }\n');
    const script = `import { Node } from "./index.js"; try { new Node({ id: "a", url: "ws://x", workspace: "/w", stateDir: "/s" }); } catch ({ reason, message, hint }) { console.log(JSON.stringify([reason, message, hint])); }`;
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], { cwd: dist, encoding: "utf8" });
    const [reason, message, hint] = JSON.parse(stdout) as string[];
    assert.equal(reason, "node.cannot_start");
    assert(message?.includes(addon), message);
    assert.match(hint ?? "", /npm run build/);
  });
});

describe("the types of the addon", () => {
  const line = (kind: string, name: string, def: string, doc = ""): string => JSON.stringify({ kind, name, js_doc: doc, def });

  it("[NJ11] are written from what its macros say, in the order of their names", () => {
    const text = nativeTypes([
      `${line("interface", "B", "b: string\n/** Number. */\nn?: number")}\n${line("struct", "A", "", "/** A. */\n")}\n${line("impl", "A", "close(): void")}\n`,
    ]);
    assert.match(
      text,
      /\n\/\*\* A\. \*\/\nexport declare class A \{\n {2}close\(\): void;\n\}\n\nexport interface B \{\n {2}b: string;\n {2}\/\*\* Number\. \*\/\n {2}n\?: number;\n\}\n$/,
    );
    assert.throws(() => nativeTypes([line("enum", "E", "a")]), /does not know/);
  });
});
