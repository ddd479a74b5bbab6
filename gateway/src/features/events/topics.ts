/** The topics of the core. A pack brings its own (`FeatureDefinition.topics`). */
import type { HumanReviewPayload } from "../../../../protocol/gen/types.ts";
import { checkHumanReviewPayload } from "../../../../protocol/gen/validators/checks.js";
import { contractProblem, type Topic } from "../../events/topics.ts";

export const HUMAN_REVIEW = "human_review";
export const CORE_TOPICS: readonly Topic[] = [
  {
    name: HUMAN_REVIEW,
    version: 1,
    doc: "human_review asks your human for a decision: {question, reason?, details?}.",
    needsApproval: true,
    approval:
      "Approve means yes and reject means no to the question. The agent is told your answer with the next message, with the words that you add.",
    problem: contractProblem("HumanReviewPayload", checkHumanReviewPayload),
    text: (payload) => (checkHumanReviewPayload(payload) ? textOf(payload) : ""),
  },
];
const textOf = ({ question, reason }: HumanReviewPayload): string => (reason === undefined ? question : `${question} Why: ${reason}`);
