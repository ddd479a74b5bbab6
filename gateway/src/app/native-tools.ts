/** Composes the native tools of a list of features and closes the registry. */
import { mediaText } from "../features/media/media-text.ts";
import { Readings } from "../features/media/readings.ts";
import { readSkillBytes, readSkillFile } from "../features/skills/read.ts";
import { createAgentFiles } from "../features/workspace/tool-files.ts";
import type { FeatureTables } from "../kernel/feature.ts";
import type { Logger } from "../platform/log.ts";
import type { NativeTools } from "../ports/native-tools.ts";
import type { ToolEntry } from "../ports/tool-entry.ts";
import type { Readers } from "../ports/readers.ts";
import type { Bucket } from "../storage/bucket.ts";
import { createNativeTools } from "../tools/native-tools.ts";
import { NativeToolList } from "../tools/registry.ts";
import { FEATURES } from "./features.ts";

/** Tools read texts only. */
const NO_IMAGES = { imagePixels: 0, imageBytes: 0 } as const;

export interface NativeToolsParts {
  readonly features?: readonly FeatureTables[];
  readonly readers?: Readers | undefined;
  /** Gets the exceptions inside tools, whose texts may hold anything. */
  readonly log: Pick<Logger, "error">;
}

/** Throws when two features register one name. */
export function composeNativeTools(bucket: Bucket, { features = FEATURES.definitions, readers, log }: NativeToolsParts): NativeTools {
  const list = new NativeToolList();
  for (const { name, tools } of features) list.add(name, tools ?? []);
  const readings = new Readings(bucket, { ...NO_IMAGES, readers });
  const files = createAgentFiles(
    bucket,
    {
      text: (path, { identity, gateway, now }) => readSkillFile(bucket, gateway, identity.agentId, path, now),
      bytes: (path, { identity, gateway, now }) => readSkillBytes(bucket, gateway, identity.agentId, path, now),
    },
    (file) => mediaText(file, bucket, readings),
  );
  return createNativeTools(list.close(), files, (tool, error) => log.error("native_tool_failed", { tool, error }));
}

/** The same tools, and those of the packs that are on. `run` hands calls of those to the gateway. */
export const withPackTools = (native: NativeTools, packTools: () => readonly ToolEntry[]): NativeTools => ({
  get entries() {
    return [...native.entries, ...packTools()];
  },
  run: (...call) => native.run(...call),
  ...(native.problem === undefined ? {} : { problem: native.problem }),
  ...(native.preview === undefined ? {} : { preview: native.preview }),
});
