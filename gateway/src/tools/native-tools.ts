/**
 * The tools that are always there, with no machine connected: the agent's own files, what it may know of the gateway, its other
 * conversations, what it remembers (product P5.4); one file per noun beside this one. Safe to run again with the same callId: changes
 * are conditional on what was read and remember their call (promises P8). Never throws, never shows a secret: what a gateway's
 * answer holds was masked there.
 */
import type { NativeTools } from "../ports/native-tools.ts";
import type { Bucket } from "../storage/bucket.ts";
import { createFiles } from "../features/workspace/tool-files.ts";
import { GATEWAY_TOOLS } from "../features/config/tools.ts";
import { MEMORY_TOOLS } from "../features/search/tools.ts";
import { MESSAGE_TOOLS } from "../features/channels/tools.ts";
import { SESSION_TOOLS } from "../features/sessions/tools.ts";
import { denied, type Tool } from "./tool.ts";
import { WORKSPACE_TOOLS } from "../features/workspace/tools.ts";

const TOOLS: readonly Tool[] = [...WORKSPACE_TOOLS, ...GATEWAY_TOOLS, ...SESSION_TOOLS, ...MESSAGE_TOOLS, ...MEMORY_TOOLS];

export function createNativeTools(bucket: Bucket): NativeTools {
  const files = createFiles(bucket);
  const byName = new Map(TOOLS.map((entry) => [entry.definition.name, entry]));
  return {
    definitions: TOOLS.map(({ definition }) => definition),
    forGuests: new Set(TOOLS.filter(({ forGuests }) => forGuests).map(({ definition }) => definition.name)),
    async run(name, args, context) {
      const found = byName.get(name);
      if (!found) return { ok: false, error: { reason: "tool.unknown", message: `There is no tool \`${name.slice(0, 128)}\`.` } };
      // Whoever calls, and whatever was shown: a call may be forged, or come from before a restart.
      if (!context.identity.isOwnersSession && !found.forGuests)
        return denied(`Not run: only the owner's own conversation may use ${name}.`);
      try {
        return await found.run(args, context, files);
      } catch {
        return { ok: false, error: { reason: "internal", message: `The tool \`${name}\` failed inside GSV. The log has the details.` } };
      }
    },
  };
}
