/** Daily memory files. */
import type { Result } from "./result.ts";
import type { Taint } from "./taint.ts";

export interface MemoryFiles {
  /** Appends once per `key`, also when it is repeated. `date` is YYYY-MM-DD; `text` includes its heading. */
  append(agentId: string, date: string, text: string, key: string): Promise<Result<{ readonly path: string }>>;
  /** Keeps the text for the owner's review instead, once per `key` (rule TA12). */
  quarantine(memory: ForeignMemory): Promise<Result<{ readonly id: string }>>;
}
/** What was learnt in a conversation that others have written into. */
export interface ForeignMemory {
  readonly agentId: string;
  readonly date: string;
  readonly text: string;
  readonly key: string;
  readonly taint: Taint;
  readonly sessionKey: string;
  readonly at: number;
}
