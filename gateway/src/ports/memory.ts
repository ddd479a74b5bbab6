/** Daily memory files. */
import type { Result } from "./result.ts";

export interface MemoryFiles {
  /** Appends once per `key`, also when it is repeated. `date` is YYYY-MM-DD; `text` includes its heading. */
  append(agentId: string, date: string, text: string, key: string): Promise<Result<{ readonly path: string }>>;
}
