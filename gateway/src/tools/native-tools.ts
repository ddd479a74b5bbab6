/**
 * Runs native tools: the tools that are available with no machine connected (product P5.4). Knows no single tool; features register
 * them (registry.ts). A call may run again with the same call id (promises P8). Never throws, never shows a secret.
 */
import type { AgentFiles } from "../ports/agent-files.ts";
import type { NativeOutcome, NativeToolContext, NativeTools } from "../ports/native-tools.ts";
import { mayUse, NATIVE_PREFIX, type NativeTool } from "./registry.ts";
import { denied, outcome } from "./tool.ts";
import { failure } from "../ports/result.ts";

/** `failed` is called with exceptions inside tools, which are bugs. */
export function createNativeTools(
  tools: readonly NativeTool[],
  files: AgentFiles,
  failed: (tool: string, error: unknown) => void,
): NativeTools {
  const byName = new Map(tools.map((tool) => [tool.entry.definition.name, tool]));
  return {
    entries: tools.flatMap(({ entry, isInner }) => (isInner ? [] : [entry])),
    problem: (name, args, agentId) => byName.get(name)?.problem?.(args, agentId),
    preview: async (name, args, identity) => byName.get(name)?.preview?.(args, identity, files),
    async run(name, args, context) {
      const found = byName.get(name);
      if (!found) return name.startsWith(NATIVE_PREFIX) ? unknown(name) : runForPack(name, args, context);
      // Checked at each call, whatever the model was shown: a call may be forged, or come from before a restart.
      if (!mayUse(found.entry, { isOwners: context.identity.isOwnersSession, isOpened: () => false }))
        return denied(`Not run: only the owner's own conversation may use ${name}.`);
      try {
        return await found.run(args, context, files);
      } catch (error) {
        failed(name, error);
        return failure("internal", `The tool \`${name}\` failed inside GSV.`, "Try it again; if it fails again, tell the user.");
      }
    },
  };
}

const unknown = (tool: string): NativeOutcome => ({
  ok: false,
  error: { reason: "tool.unknown", message: `There is no tool \`${tool.slice(0, 128)}\`.` },
});
/** Tools of packs run in the gateway, which knows those that are on. They are the owner's alone. */
async function runForPack(tool: string, args: Readonly<Record<string, unknown>>, context: NativeToolContext): Promise<NativeOutcome> {
  const { identity, gateway, callId } = context;
  if (!identity.isOwnersSession) return unknown(tool);
  try {
    return outcome(await gateway.packTool({ tool, args, callId }));
  } catch {
    return failure("internal", `The tool \`${tool.slice(0, 128)}\` was cut off inside GSV.`, "Try it again.");
  }
}
