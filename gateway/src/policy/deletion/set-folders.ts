/** Variables that name the folder which a tool empties: `CARGO_TARGET_DIR=src cargo clean` (rule PO13). PURE. */
import { type TemporaryTrust, isTemporary } from "./temporary-paths.ts";
import { withoutQuotes } from "../quotes.ts";

const OF_CLEAN =
  /(?<![\w$]|\$\{)(?:CARGO_(?:BUILD_)?TARGET_DIR|CARGO_HOME|GO(?:MODCACHE|CACHE|PATH|FLAGS|ENV|TMPDIR))\b(=[^\s;&|]{0,300})?/g;
/** The usual folder of cargo is made by it. */
const OF_TOOL = /^(?:\.?\/?|\$\{?(?:PWD|HOME)\}?\/|~\/)(?:\.cache\/[\w./-]{1,100}|target(?:[\w.-]{0,40}))\/?$/;
export const isFolderOfTool = (path: string, trust: TemporaryTrust): boolean => isTemporary(path, trust) || OF_TOOL.test(path);

/** Whether the text sets such a variable to another folder, or in a way that does not show it. */
export function setsCleaned(text: string, trust: TemporaryTrust): boolean {
  if (!text.includes("clean") || !(text.includes("CARGO") || text.includes("GO"))) return false;
  const plain = withoutQuotes(text);
  if (!/\b(?:cargo|go)\b/.test(plain) || !/\bclean\b/.test(plain)) return false;
  return [...plain.matchAll(OF_CLEAN)].some(([, value]) => !isFolderOfTool(value?.slice(1) ?? "", trust));
}
