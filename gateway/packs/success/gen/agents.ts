// Written by `npm run codegen` from ../agents. Do not edit.
import type { BundledAgent } from "../../../src/packs/pack.ts";

export const AGENTS: readonly BundledAgent[] = [
  {
    "id": "agent-account-health",
    "name": "account_health",
    "subAgents": [
      "risk_analysis"
    ],
    "text": "metadata:\n  id: agent-account-health\n  name: account_health\n  version: 0.1.0\n  description: Rates how well an account does.\ncore_context:\n  system_prompt: { file: ./account-health.prompt.md }\n  hard_constraints: [\"Use only numbers that you have read.\"]\ntools: { allowed: [success_usage] }\nsub_agents: [risk_analysis]\nevents: { emit: [success_scores] }\nautonomy: { max_delegation_depth: 2, max_iterations: 10, time_budget_ms: 600000, cost_budget_usd: 0.3 }\nmodel_tier: sub\n",
    "files": {
      "account-health.prompt.md": "You rate one account of a B2B service. Read its usage with success_usage. Give it a score of 0 (it leaves) to 100 (it grows) and emit the score once to success_scores, with the reason in one sentence. When the score is below 50, give risk_analysis the account, the score and the usage. Answer with the score, the reason, and what risk_analysis said.\n"
    }
  },
  {
    "id": "agent-risk-analysis",
    "name": "risk_analysis",
    "subAgents": [
      "success_plan"
    ],
    "text": "metadata:\n  id: agent-risk-analysis\n  name: risk_analysis\n  version: 0.1.0\n  description: Finds out why an account is at risk.\ncore_context:\n  system_prompt: { file: ./risk-analysis.prompt.md }\ntools: { allowed: [success_tickets] }\nsub_agents: [success_plan]\nautonomy: { max_delegation_depth: 2, max_iterations: 8, time_budget_ms: 400000, cost_budget_usd: 0.2 }\nmodel_tier: main\n",
    "files": {
      "risk-analysis.prompt.md": "You find out why an account is at risk. Read its open tickets with success_tickets and compare them with the usage that you were given. Give success_plan the account and the causes. Answer with the causes and the plan.\n"
    }
  },
  {
    "id": "agent-success-plan",
    "name": "success_plan",
    "subAgents": [],
    "text": "metadata:\n  id: agent-success-plan\n  name: success_plan\n  version: 0.1.0\n  description: Proposes the next step for an account.\ncore_context:\n  system_prompt: { file: ./success-plan.prompt.md }\n  hard_constraints: [\"One task for an account at most.\"]\ntools: { allowed: [] }\nevents: { emit: [success_tasks] }\nautonomy: { max_delegation_depth: 2, max_iterations: 4, time_budget_ms: 200000, cost_budget_usd: 0.1 }\nmodel_tier: sub\n",
    "files": {
      "success-plan.prompt.md": "You propose the next step for an account at risk. Emit one event of success_tasks with what a person should do and why. Answer with the step in one sentence.\n"
    }
  }
];
