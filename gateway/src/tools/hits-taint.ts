/** Who may have written what a search has found (rule TA4). */
import type { SearchHit } from "../../../protocol/gen/types.ts";
import { fileLabel } from "../policy/taint.ts";
import type { AgentFiles } from "../ports/agent-files.ts";
import { higher, type Taint } from "../ports/taint.ts";

/** Files have their own label. In a conversation anyone may have written, and the index does not know who (rule TA4). */
export async function hitsTaint(
  tool: string,
  hits: readonly Pick<SearchHit, "source" | "path">[],
  files: AgentFiles,
  agentId: string,
): Promise<Taint> {
  const { all, isWhole } = labelOfPlaces(tool, hits);
  if (isWhole) return all;
  return higher(
    all,
    await files.taintOf(
      agentId,
      hits.flatMap(({ path }) => (path === undefined ? [] : [path])),
    ),
  );
}

/** The same for hits that come with the labels of their files. */
export function foundTaint(
  tool: string,
  hits: readonly { readonly hit: Pick<SearchHit, "source" | "path">; readonly taint?: Taint }[],
): Taint {
  const { all, isWhole } = labelOfPlaces(
    tool,
    hits.map(({ hit }) => hit),
  );
  return isWhole ? all : hits.reduce((known, { taint }) => higher(known, taint), all);
}

/** `isWhole`: no label of a file can be higher. */
function labelOfPlaces(
  tool: string,
  hits: readonly Pick<SearchHit, "source" | "path">[],
): { readonly all: Taint; readonly isWhole: boolean } {
  const labels = new Set(hits.map(({ source, path }) => (source === "workspace" ? fileLabel(path) : "world")));
  const label = (["world", "files"] as const).find((one) => labels.has(one)) ?? "self";
  const all: Taint = { label, source: `the output of ${tool}` };
  return { all, isWhole: label === "world" };
}
