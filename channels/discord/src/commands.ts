/** The bot's slash commands. Data only; the gateway executes them. */

interface Command {
  readonly name: string;
  readonly description: string;
  readonly options?: readonly {
    /** 3: text. */
    readonly type: 3;
    readonly name: string;
    readonly description: string;
    readonly required: boolean;
    readonly max_length: number;
  }[];
}
export const APPLICATION_COMMANDS: readonly Command[] = [
  { name: "new", description: "Archive this conversation and start a new one." },
  { name: "stop", description: "Stop what the agent is doing." },
  { name: "status", description: "Show status." },
  {
    name: "model",
    description: "Show or change the model.",
    options: [{ type: 3, name: "name", description: "For example anthropic/claude-sonnet-5", required: false, max_length: 200 }],
  },
  { name: "help", description: "List the commands." },
];
