/**
 * Accepts a message into a session: reads it, stores its files, fetches the reset policy and gives the machine one event. Keeps the order
 * of messages. Answers commands.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { asRunId, type ChatSendResult, type Directives } from "../../../protocol/gen/types.ts";
import { failure, type Result, succeed } from "../ports/result.ts";
import type { SessionIdentity, SessionSend } from "../ports/session.ts";
import type { Applied } from "./apply.ts";
import { CommandRunner, repeated } from "./command-runner.ts";
import { directiveOnlyText } from "./commands.ts";
import type { SessionDriver } from "./driver.ts";
import { recheckLimit } from "./recheck-limit.ts";
import { type IntakeMessage, takeIn, withFiles, withMode } from "./intake.ts";
import type { State } from "./machine/state.ts";
import { effectivePolicy, resetDue } from "./reset-policy.ts";
import { type After, within } from "../../../protocol/runtime/within.ts";

/** The reset policy of a session that was active this recently is not fetched again. */
const POLICY_FRESH_MS = 60_000;
/** A gateway that does not answer must not keep a message from being accepted. */
const POLICY_WAIT_MS = 2_000;
/** Commands that must not overtake an earlier message whose files are being stored. */
const AFTER_FILES: ReadonlySet<string> = new Set(["new", "reset", "compact"]);

export class MessageAcceptor {
  readonly #driver: SessionDriver;
  readonly #after: After;
  readonly #commands: CommandRunner;
  /** Messages whose files are being stored, and those behind them. */
  #accepting = 0;
  #lastAccepted: Promise<void> = Promise.resolve();

  constructor(driver: SessionDriver, after: After) {
    this.#driver = driver;
    this.#after = after;
    this.#commands = new CommandRunner(driver);
  }

  async send(input: SessionSend): Promise<Result<ChatSendResult>> {
    const taken = takeIn(input, this.#driver.wall(), this.#driver.state?.settings.model ?? this.#driver.contexts.known?.config.model);
    if (!taken.ok) return taken;
    const moded = withMode(input, taken.value, this.#driver.wall());
    if (!moded.ok) return moded;
    const intake = moded.value;
    switch (intake.kind) {
      case "bad-command":
        return succeed({ status: "command", command: intake.name, error: intake.message });
      case "directive-only": {
        const refused = await this.#badModel(intake.directives, input.identity);
        if (refused !== undefined) return refused;
        return succeed({
          status: "directive-only",
          response: intake.status ? this.#commands.statusText(input) : directiveOnlyText(intake.directives),
          directives: intake.directives,
        });
      }
      case "command":
        if (this.#accepting > 0 && AFTER_FILES.has(intake.command.name)) await this.#lastAccepted;
        return this.#commands.run(input, intake.command);
      case "message": {
        const hasFiles = (input.attachments?.length ?? 0) > 0;
        const take = (): Promise<Result<ChatSendResult>> => this.#message(input, intake);
        const isPaused = this.#driver.state?.run.phase === "paused";
        return this.#acceptInOrder(hasFiles || isPaused || intake.incoming.directives.model !== undefined, async () => {
          const { directives } = intake.incoming;
          const refused = directives.model && (await this.#badModel(directives, input.identity));
          return refused ?? (hasFiles ? this.#driver.waits.withFiles(take) : take());
        });
      }
    }
  }
  async #badModel({ model }: Directives, identity: SessionIdentity): Promise<Result<never> | undefined> {
    const problem = model && (await this.#driver.models.problem(model, identity));
    return problem === undefined ? undefined : failure("chat.bad_directive", `${problem.message} Nothing was sent.`, problem.hint);
  }

  /** Files are stored before their message is accepted. Later messages wait meanwhile, so that order is kept (promise P3). */
  async #acceptInOrder<T>(slow: boolean, work: () => Promise<T>): Promise<T> {
    if (!slow && this.#accepting === 0) return work();
    const before = this.#lastAccepted;
    let done = (): void => {};
    this.#lastAccepted = new Promise((resolve) => {
      done = resolve;
    });
    this.#accepting += 1;
    await before;
    try {
      return await work();
    } finally {
      this.#accepting -= 1;
      done();
    }
  }
  async #message(input: SessionSend, given: IntakeMessage): Promise<Result<ChatSendResult>> {
    const whole = (input.attachments?.length ?? 0) === 0 ? succeed(given) : await this.#stored(input, given);
    if (!whole.ok) return whole;
    const intake = whole.value;
    await this.#refreshPolicy();
    await this.#recheckLimit(input);
    const phase = this.#driver.state?.run.phase ?? "idle";
    if (input.contextVersion !== undefined && phase === "idle") this.#driver.contexts.confirm(input.contextVersion, this.#driver.wall());
    const birth = { identity: input.identity };
    if (input.held && this.#driver.state?.held !== true) this.#driver.apply({ type: "Held", held: true }, { birth });
    const state = this.#driver.state;
    const due = state && this.#resetDue(state);
    const wish = intake.steer ? { whileBusy: "steer" as const } : input.whileBusy ? { whileBusy: input.whileBusy } : {};
    const applied = this.#driver.apply(
      {
        type: "UserMessage",
        identity: input.identity,
        incoming: intake.incoming,
        bytes: intake.bytes,
        ...(due ? { resetDue: due } : {}),
        ...wish,
      },
      { key: `m:${input.messageId}`, birth },
    );
    if (intake.status && applied.step) this.#driver.tell(input.runId, this.#commands.statusText(input));
    const sent = this.#sent(applied, intake);
    return input.held && sent.ok && sent.value.status === "started" ? succeed({ ...sent.value, stopped: true }) : sent;
  }
  /** The message with its files in the bucket. Stores nothing for a message that is known already or will be refused. */
  async #stored(input: SessionSend, intake: IntakeMessage): Promise<Result<IntakeMessage>> {
    const { identity, messageId, attachments = [], badFilesAsNotes } = input;
    const state = this.#driver.state;
    const mayBeRefused = state !== undefined && state.run.phase !== "idle" && input.whileBusy !== "interrupt";
    const isFull = mayBeRefused && state.queue.count >= LIMITS.queueMessages;
    if (isFull || this.#driver.store.seen(`m:${messageId}`)) return succeed(intake);
    const taken = await this.#driver.media.takeAttachments({
      sessionKey: identity.key,
      messageId,
      attachments,
      ...(badFilesAsNotes === undefined ? {} : { badFilesAsNotes }),
      now: this.#driver.wall(),
    });
    return taken.ok ? withFiles(intake, taken.value) : taken;
  }
  #sent({ answer, duplicate }: Applied, intake?: IntakeMessage): Result<ChatSendResult> {
    if (answer?.type === "refused") return { ok: false, error: answer.error };
    if (answer?.type !== "accepted") return repeated(answer);
    const directives = intake?.incoming.directives ?? {};
    return succeed({
      status: "started",
      runId: asRunId(answer.runId),
      queued: answer.queued,
      ...(duplicate ? { duplicate } : {}),
      ...(answer.seq === undefined ? {} : { seq: answer.seq }),
      ...(answer.steers === undefined ? {} : { steers: asRunId(answer.steers) }),
      ...(answer.interrupted === undefined ? {} : { interrupted: asRunId(answer.interrupted) }),
      ...(Object.keys(directives).length > 0 ? { directives } : {}),
    });
  }
  /** Before the first message after a pause, fetches the reset policy: the current one decides, not the one from before the pause. */
  async #refreshPolicy(): Promise<void> {
    const state = this.#driver.state;
    if (state?.run.phase !== "idle" || state.messageCount === 0) return;
    const { contexts } = this.#driver;
    if (contexts.known && this.#driver.wall() - state.updatedAt < POLICY_FRESH_MS) return;
    await within(this.#after, POLICY_WAIT_MS, contexts.current().then(noop, noop), noop);
  }
  /** The message must not end a run whose limit was raised meanwhile (rule SP10). */
  async #recheckLimit({ quiet, held, messageId }: SessionSend): Promise<void> {
    if (this.#driver.state?.run.phase !== "paused" || quiet || held || this.#driver.store.seen(`m:${messageId}`)) return;
    await within(this.#after, POLICY_WAIT_MS, recheckLimit(this.#driver).then(noop, noop), noop);
  }
  #resetDue(state: State): "daily" | "idle" | undefined {
    const config = this.#driver.contexts.known?.config;
    // Without a configuration the policy is unknown. The next message checks again.
    if (!config) return undefined;
    return resetDue(
      effectivePolicy(state.resetPolicy, config.session.defaultResetPolicy),
      config.userTimezone,
      state.updatedAt,
      this.#driver.wall(),
    );
  }
}
const noop = (): void => {};
