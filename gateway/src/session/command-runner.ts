/** Executes the slash commands of a session and writes their answers. commands.ts parses them. */
import type { ChatSendResult, ModelRef } from "../../../protocol/gen/types.ts";
import { modelNamed } from "../models/choose.ts";
import { resolveModelId } from "../models/resolve.ts";
import { isPlainlyOwner, originText } from "../ports/origin.ts";
import { type Result, succeed, sentence } from "../ports/result.ts";
import type { SessionSend } from "../ports/session.ts";
import { isUnsure, taintText } from "../ports/taint.ts";
import type { Applied } from "./apply.ts";
import { type Command, GUEST_HELP_TEXT, HELP_TEXT, statusText } from "./commands.ts";
import type { SessionDriver } from "./driver.ts";
import type { Answer, EventBody } from "./machine/event.ts";
import { changedMode, modeText, currentMode } from "./mode.ts";
import { activeRun, shownState } from "./machine/state.ts";
import { openCodes } from "./machine/phase/questions.ts";
import { counted } from "./machine/text.ts";
import { machineWaits } from "./views.ts";

/** The answer to a repeated command, which is not executed again. */
export function repeated(answer: Answer | undefined): Result<ChatSendResult> {
  if (!answer) throw new Error("the session answered a message with something else");
  return succeed({ status: "command", command: answer.type, response: "This was done before." });
}

/** A provider without a model uses its default model, so that one is shown. */
const modelName = (model: ModelRef): string => `${model.provider}/${resolveModelId(model)}`;

/** `gsv model use` and the agent's model do not change it. */
const OWN_MODEL = "set for this conversation";

export class CommandRunner {
  readonly #driver: SessionDriver;

  constructor(driver: SessionDriver) {
    this.#driver = driver;
  }

  async run(input: SessionSend, command: Command): Promise<Result<ChatSendResult>> {
    const answered = (response: string): Result<ChatSendResult> => succeed({ status: "command", command: command.name, response });
    const once = (event: EventBody): Applied =>
      this.#driver.apply(event, { key: `m:${input.messageId}`, birth: { identity: input.identity } });
    switch (command.name) {
      case "help":
        return answered(input.byGuest === true ? GUEST_HELP_TEXT : HELP_TEXT);
      case "status":
        return answered(this.statusText(input));
      case "stop": {
        if (command.all) return this.#everything(input, "stop");
        const { answer } = once({ type: "Abort" });
        if (answer?.type !== "aborted") return repeated(answer);
        if (!answer.wasRunning) return answered("Nothing is running.");
        const calls = answer.cancelled > 0 ? `, with ${counted(answer.cancelled, "tool call")} cancelled` : "";
        const { waiting = 0 } = answer;
        const next = waiting === 0 ? "" : ` ${counted(waiting, "queued message")} ${waiting === 1 ? "is" : "are"} read next.`;
        return answered(`Stopped${calls}.${next}`);
      }
      case "resume":
        return this.#everything(input, "resume");
      case "model":
        return this.#model(input, command, once);
      case "think": {
        if (command.level === undefined && command.clear === undefined)
          return answered(`Thinking: ${this.#thinkLevel() ?? "as the model does by default"}.`);
        const text = command.level === undefined ? "From now on: thinking as configured." : `From now on: thinking ${command.level}.`;
        once({
          type: "SettingsPatched",
          text,
          ...(command.level ? { settings: { thinkingLevel: command.level } } : { clear: ["thinkingLevel"] }),
        });
        return answered(text);
      }
      case "mode": {
        const { mode, ms, clear } = command;
        if (mode === undefined && clear === undefined) return answered(`Mode: ${this.#modeText()}.`);
        if (mode === undefined) {
          const text = "From now on: the configured mode.";
          once({ type: "SettingsPatched", text, clear: ["mode"] });
          return answered(text);
        }
        const { identity, origin } = input;
        const setter = { isOwners: identity.isOwnersSession, byClient: origin.kind === "client", wall: this.#driver.wall() };
        const settings = changedMode({ mode, modeMs: ms }, setter);
        if (!settings.ok) return succeed({ status: "command", command: command.name, error: sentence(settings.error) });
        const text = `From now on: mode ${modeText(mode, settings.value.modeUntil, this.#zone())}.`;
        once({ type: "SettingsPatched", text, settings: settings.value });
        return answered(text);
      }
      case "trust":
        return this.#trust(input, once);
      case "new":
      case "reset":
        return this.#archiveCommand(command.name, once({ type: "Reset" }));
      case "compact":
        return this.#archiveCommand(
          command.name,
          once({ type: "Compact", runId: input.runId, ...(command.keep === undefined ? {} : { keep: command.keep }) }),
        );
    }
  }
  async #model(
    { identity }: SessionSend,
    command: Extract<Command, { readonly name: "model" }>,
    once: (event: EventBody) => Applied,
  ): Promise<Result<ChatSendResult>> {
    const answered = (response: string): Result<ChatSendResult> => succeed({ status: "command", command: "model", response });
    const refused = (error: string): Result<ChatSendResult> => succeed({ status: "command", command: "model", error });
    const { named, clear } = command;
    const { models } = this.#driver;
    const current = await models.current(identity);
    const meant = named === undefined ? undefined : modelNamed(named, current);
    if (meant?.ok === false) return refused(meant.message);
    const model = meant?.model ?? command.model;
    if (model === undefined && clear === undefined) {
      const back = this.#hasOwnModel() ? `, ${OWN_MODEL}. To go back to the configured one: \`/model default\`` : "";
      return answered(`The model is ${current ? modelName(current) : "the configured one"}${back}.`);
    }
    const problem = model && (await models.problem(model, identity));
    if (problem !== undefined) return refused(sentence(problem));
    // As `gsv model use`: each message after it would fail, also those that wait, and after `/new`.
    const missing = model && (await models.warning(model, identity));
    if (missing !== undefined) return refused(`${missing} The model stays as it is.`);
    const text = model ? `From now on: the model ${model.provider}/${model.id}.` : "From now on: the configured model.";
    once({ type: "SettingsPatched", text, ...(model ? { settings: { model } } : { clear: ["model"] }) });
    return answered(text);
  }
  /** `/trust`: only the owner, in a conversation of their own, from a client or a direct message (rule TA8). */
  async #trust({ origin, identity }: SessionSend, once: (event: EventBody) => Applied): Promise<Result<ChatSendResult>> {
    const command = "trust";
    if (!identity.isOwnersSession || !isPlainlyOwner(origin))
      return succeed({ status: "command", command, error: "Only the owner can vouch for a conversation, and only in one of their own." });
    const { taint } = this.#driver.state ?? {};
    if (!isUnsure(taint)) return succeed({ status: "command", command, response: "No one else has written in this conversation." });
    // Recorded first: without the entry nothing is trusted.
    const entry = { actor: `session:${identity.key}`, origin: originText(origin), action: "session.trust", target: identity.key } as const;
    await this.#driver.gateway.audit({ ...entry, decision: "allowed", detail: taintText(taint) });
    const text = `From now on what this conversation has read so far counts as yours (it was ${taintText(taint)}).`;
    once({ type: "Trusted", text });
    return succeed({ status: "command", command, response: text });
  }
  /** `/stop all` and `/resume`: for clients, and for the owner in a direct message. */
  async #everything({ origin, identity }: SessionSend, command: "stop" | "resume"): Promise<Result<ChatSendResult>> {
    if (!isPlainlyOwner(origin))
      return succeed({ status: "command", command, error: "Only the owner may do this, in a direct message or with `gsv stop --all`." });
    const by = `session:${identity.key}`;
    const gateway = this.#driver.gateway;
    const done = await (command === "stop" ? gateway.stopAll(by, origin) : gateway.resumeAll(by, origin));
    return succeed({ status: "command", command, response: done });
  }
  async #archiveCommand(command: string, { answer, duplicate }: Applied): Promise<Result<ChatSendResult>> {
    if (answer?.type === "refused") return succeed({ status: "command", command, error: sentence(answer.error) });
    if (answer?.type !== "archiving") return repeated(answer);
    if (duplicate) return succeed({ status: "command", command, response: "This was requested before." });
    if (answer.waits)
      return succeed({ status: "command", command, response: "The conversation will be compacted when the current answer is complete." });
    const end = await this.#driver.waits.archiveEnd(answer.requestId);
    if (!end.ok) return succeed({ status: "command", command, error: sentence(end.error) });
    const response =
      end.kind === "reset"
        ? `A new conversation begins. ${end.archived === 0 ? "The old one was empty." : `The old one (${counted(end.archived, "message")}) is archived.`}`
        : end.trimmed === 0
          ? `There is nothing to archive. Messages kept: ${end.kept}.`
          : `${counted(end.trimmed, "message")} ${end.trimmed === 1 ? "was" : "were"} archived${end.summarized ? " and summarised" : ""}, ${end.kept} ${end.kept === 1 ? "stays" : "stay"}.`;
    return succeed({ status: "command", command, response });
  }

  #modelName(): string | undefined {
    const { known } = this.#driver.contexts;
    const model = this.#driver.state?.settings.model ?? known?.agent.model ?? known?.config.model;
    return model && `${modelName(model)}${this.#hasOwnModel() ? ` (${OWN_MODEL})` : ""}`;
  }
  #hasOwnModel(): boolean {
    return this.#driver.state?.settings.model !== undefined;
  }
  #thinkLevel(): string | undefined {
    return this.#driver.state?.settings.thinkingLevel ?? this.#driver.contexts.known?.config.model.thinkLevel;
  }
  #zone(): string {
    return this.#driver.contexts.known?.config.userTimezone ?? "UTC";
  }
  #modeText(): string {
    const state = this.#driver.state;
    return currentMode(state?.settings ?? {}, this.#driver.contexts.known?.config, this.#driver.wall(), state && activeRun(state.run));
  }
  /** `identity` counts before the first message. */
  statusText({ identity }: Pick<SessionSend, "identity">): string {
    const state = this.#driver.state;
    if (!state) return `Session: ${identity.key}\nState: new, no messages yet`;
    const { run } = state;
    return statusText({
      state: shownState(run),
      step: activeRun(run)?.step,
      waiting: state.queue.count,
      questions: openCodes(run),
      machines: machineWaits(run),
      wall: this.#driver.wall(),
      isOwners: identity.isOwnersSession,
      messages: state.messageCount,
      context: this.#driver.models.size(),
      compactions: state.compactions,
      tokens: state.usage,
      model: this.#modelName(),
      thinkLevel: this.#thinkLevel(),
      ...(identity.isOwnersSession ? { mode: this.#modeText(), ...(state.taint ? { taint: state.taint } : {}) } : {}),
      sessionId: state.sessionId,
      sessionKey: state.identity.key,
    });
  }
}
