/**
 * Where the gateway's parts come from: the only file of this folder that knows who implements a port, and the one place where tests put
 * something else.
 */
import type { Env } from "../env.ts";
import type { NativeTools, SessionPort } from "../ports.ts";
import { fail } from "./outcome.ts";
import type { WorkspaceFiles } from "./services.ts";

export interface Parts {
  /** A session by its canonical key. */
  session(env: Env, key: string): SessionPort;
  nativeTools(env: Env): NativeTools;
  workspace(env: Env): WorkspaceFiles;
}

export const parts: Parts = {
  session: (env, key) => env.SESSION.getByName(key),
  nativeTools: () => ({ definitions: [], run: async (name) => fail("tool.unknown", `There is no native tool ${name}.`) }),
  workspace: () => {
    const missing = async () => fail("method.not_served");
    return { list: missing, read: missing, write: missing, delete: missing };
  },
};
