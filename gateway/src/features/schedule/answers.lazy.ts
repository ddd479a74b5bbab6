/**
 * Asks pages and machines for the conditions of HEARTBEAT.md that need them (rules HB9, HB10). A file of its own, which is loaded only
 * when a heartbeat has such a condition.
 */
import type { KernelPorts } from "../../kernel/ports.ts";
import type { NodeLooksPort } from "../../ports/nodes.ts";
import { isForeign, type Taint, taintText } from "../../ports/taint.ts";
import type { Answer, Answers } from "../../schedule/failing.ts";
import type { Asked } from "../../schedule/precheck.ts";
import { lookAtPage, type PagePorts } from "./page-look.ts";

export interface AnswerPorts extends NodeLooksPort, PagePorts, Pick<KernelPorts, "log"> {}
export interface Asking {
  readonly agentId: string;
  readonly asked: readonly Asked[];
  /** The label of a conversation that wrote the file. */
  readonly taint?: Taint;
}
/** All conditions of a file are looked at side by side, and this long at most. */
export const WHOLE_MS = 25_000;

/** Never rejects. */
export async function answersOf(ports: AnswerPorts, { agentId, asked, taint }: Asking): Promise<Answers> {
  const whole = ports.web.limit(WHOLE_MS);
  const answers = await Promise.all(
    asked.map(async (condition) => {
      const work = condition.kind === "exec" ? command(ports, agentId, condition, taint) : page(ports, condition, taint, whole);
      const answered = work.catch((error: unknown) => {
        ports.log.error("condition_failed", { condition: condition.text, error });
        return FAILED;
      });
      const answer = await Promise.race([answered, over(whole)]);
      return [condition.text, answer] as const;
    }),
  );
  return new Map(answers);
}
const FAILED: Answer = { kind: "failed", why: "An error of the gateway, whose log has the details." };

const page = async (ports: AnswerPorts, { url }: Extract<Asked, { kind: "http_changed" }>, taint: Taint | undefined, whole: AbortSignal) =>
  // An address can carry what a misled conversation has read.
  isForeign(taint)
    ? failed(
        `Others may have written what the conversation had read that wrote HEARTBEAT.md (${taintText(taint)}). Check the file and save it yourself: \`gsv workspace edit HEARTBEAT.md\`.`,
      )
    : lookAtPage(ports, url, whole);
const command = (
  { nodeLooks }: AnswerPorts,
  agentId: string,
  { nodeId, command: text }: Extract<Asked, { kind: "exec" }>,
  taint: Taint | undefined,
): Promise<Answer> => nodeLooks.look({ agentId, nodeId, command: text, ...(taint === undefined ? {} : { taint }) });

const failed = (why: string): Answer => ({ kind: "failed", why });
const over = (signal: AbortSignal): Promise<Answer> =>
  new Promise((resolve) => {
    const end = (): void => resolve(failed(`There was no answer within ${WHOLE_MS / 1_000} s.`));
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
