/** Paths in folders for temporary files, whose deletion is no loss (rule PO13). PURE. */

/** Which paths in a temporary folder do not count as deletions: all, those directly in it, or none. */
export type TemporaryTrust = "all" | "direct" | "none";

/** Inside a folder for temporary files, as the path is written. No shell makes `..` of a part of it. */
export const isTemporary = (path: string, trust: TemporaryTrust): boolean =>
  trust !== "none" &&
  /^(?:\/private)?\/(?:var\/)?tmp\/[^/$]|^\$(?:TMPDIR|\{TMPDIR\})\/[^/$]/.test(path) &&
  !(trust === "direct" && BELOW.test(path)) &&
  !path.slice(2).includes("{") &&
  !path.split("/").some((part) => part === ".." || /^\..*[?*[]/.test(part)) &&
  !path.slice(1).includes("$");
/** Through a name in a temporary folder, which may be a link. */
const BELOW = /^(?:\/private)?\/(?:var\/)?tmp\/+[^/]+\/|^\$(?:TMPDIR|\{TMPDIR\})\/+[^/]+\//;
