/** A gateway for the tests of the package, with nodes in this process. Uses the parts of the end-to-end tests. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { GsvError, Node, type NodeEvents, type NodeOptions } from "@gsv/node";
import { type Client, type Json, Machine } from "../../../test/e2e/support.ts";

export { type Client, type Json, Machine, until, WireError } from "../../../test/e2e/support.ts";

/** The gateway of one file's tests, and the nodes that they open. */
export class Scene {
  readonly machine = new Machine();
  readonly nodes: Node[] = [];
  #admin: Client | undefined;

  get admin(): Client {
    assert(this.#admin !== undefined, "the gateway is up in the tests only");
    return this.#admin;
  }

  async start(): Promise<void> {
    await this.machine.up();
    // The nodes of this process find GSV's folders as `gsv` does: not those of the person who runs the tests.
    process.env["GSV_HOME"] = this.machine.home;
    process.env["GSV_CONFIG_DIR"] = this.machine.configFolder;
    process.env["XDG_CACHE_HOME"] = join(this.machine.folder, "cache");
    await this.again();
  }
  /** Connects the admin again, after the gateway was gone. */
  async again(): Promise<void> {
    this.#admin = await this.machine.client();
  }
  async end(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.close()));
    await this.machine.end();
  }

  async token(id: string): Promise<string> {
    return String((await this.admin.call("tokens.create", { kind: "node", nodeId: id }))["token"]);
  }

  /** Options of a node with a token and folders of its own. */
  async options(id: string, more: Partial<NodeOptions> = {}): Promise<NodeOptions> {
    return { ...this.folders(id), id, url: this.machine.url, token: await this.token(id), ...more };
  }
  folders(id: string): { readonly workspace: string; readonly stateDir: string } {
    const folders = { workspace: join(this.machine.folder, `${id} workspace`), stateDir: join(this.machine.folder, `${id} state`) };
    for (const folder of Object.values(folders)) mkdirSync(folder, { recursive: true, mode: 0o700 });
    return folders;
  }
  /** A node that closes with the tests. */
  open(options: NodeOptions): Node {
    const node = new Node(options);
    this.nodes.push(node);
    return node;
  }

  /** The outcome of a call: its result, or the reason of its error. */
  async call(tool: string, args: Json = {}, more: Json = {}): Promise<unknown> {
    const answer = await this.admin.call("tool.invoke", { tool, args, ...more });
    return answer["result"];
  }
}

export function withGateway(): Scene {
  const scene = new Scene();
  before(() => scene.start());
  after(() => scene.end());
  return scene;
}

/** The reason of an error that this package throws. */
export async function refused(work: Promise<unknown> | (() => unknown)): Promise<GsvError> {
  try {
    await (typeof work === "function" ? work() : work);
  } catch (error) {
    assert(error instanceof GsvError, String(error));
    return error;
  }
  throw new Error("should be refused");
}

/** Everything that a node emits, in its order. */
export function noted(node: Node): { readonly event: string; readonly value: unknown }[] {
  const seen: { event: string; value: unknown }[] = [];
  for (const event of ["connected", "disconnected", "call", "error", "closed"] as const satisfies readonly (keyof NodeEvents)[])
    node.on(event, (...args: readonly unknown[]) => {
      seen.push({ event, value: args[0] });
    });
  return seen;
}
