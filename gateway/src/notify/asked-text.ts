/** The text that brings a question of an unattended run to the owner (rules SC12, DG6). PURE. The texts of an entry are escaped already. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { ApprovalEntry } from "../../../protocol/gen/types.ts";

export function askedText(asker: string, { code, tool, nodeId, text, textBytes, why, rule }: ApprovalEntry): string {
  const isCut = textBytes > LIMITS.approvalTextBytes;
  return [
    `${asker} waits for your word: ${tool} on ${nodeId ?? "the gateway"}. ${why} (${rule})`,
    ...text.split("\n").map((line) => `| ${line}`),
    ...(isCut ? [`! The whole has ${textBytes} bytes and is not shown: \`gsv approval show ${code}\` has its sha256.`] : []),
    `Code ${code}, for ${Math.round(LIMITS.approvalMs / 60_000)} minutes. Answer in your direct chat with "allow ${code}", or "deny ${code}" with a word to the agent, or with \`gsv approval allow ${code}\`.`,
  ].join("\n");
}
