/** Entries of the tool registry for tests. */
import type { ToolDefinition } from "../../../protocol/gen/types.ts";
import type { GuestAllowance, ToolEntry } from "../../src/ports/tool-entry.ts";
import { machineEntries } from "../../src/tools/registry.ts";

export const definition = (name: string, more: Partial<ToolDefinition> = {}): ToolDefinition => ({
  name,
  description: "",
  inputSchema: {},
  ...more,
});
export const nativeEntry = (name: string, more: Partial<ToolDefinition> = {}, guests: GuestAllowance = "none"): ToolEntry => ({
  definition: definition(name, more),
  target: { kind: "native" },
  tool: name,
  feature: "test",
  policyClass: "read_private",
  guests,
  ledger: true,
});
export function machineEntry(nodeId: string, tool: string, more: Partial<ToolDefinition> = {}, ledger = true): ToolEntry {
  const [entry] = machineEntries([{ nodeId, tools: [definition(tool, more)], ledger }]);
  if (entry === undefined) throw new Error("no entry");
  return entry;
}
