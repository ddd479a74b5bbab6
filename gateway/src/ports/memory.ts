/** Daily memory files. */
import type { Result } from "./result.ts";

/** Daily memory files. */
export interface MemoryFiles {
  /** Once for each `key`, however often it is asked. `date` is YYYY-MM-DD; `text` comes with its heading. */
  append(agentId: string, date: string, text: string, key: string): Promise<Result<{ readonly path: string }>>;
}
