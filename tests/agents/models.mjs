// Every vendor's model API on one loopback port, answering by a script: `node models.mjs SCRIPT.json`.
// The script is {"what the user says": [step, ...]}; a step is {text, reasoning, calls: [{name, arguments, id}], refusals, status, error,
// delay, piece}. The first line on stdout is the address; it ends when its stdin does.
import { readFileSync } from "node:fs";
import { LLMock } from "@copilotkit/aimock";

const script = JSON.parse(readFileSync(process.argv[2], "utf8"));
const USAGE = { prompt_tokens: 110, completion_tokens: 20, total_tokens: 130, input_tokens: 110, output_tokens: 20 };

const words = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");

// Which step of whose script a request wants: by the last text of a user that holds a key, and by the groups of tool outputs after it.
function place(request) {
  const messages = request.messages ?? [];
  const system = messages.filter((message) => message.role === "system").map((message) => words(message.content)).join("\n");
  if (!(request.tools ?? []).length && /\b(title|summar)/i.test(system)) return { key: "", step: 0 };
  for (let at = messages.length - 1; at >= 0; at--) {
    if (messages[at].role !== "user") continue;
    const said = words(messages[at].content);
    const keys = Object.keys(script).filter((key) => said.includes(key));
    if (!keys.length) continue;
    keys.sort((one, other) => said.lastIndexOf(other) - said.lastIndexOf(one) || other.length - one.length);
    const after = messages.slice(at + 1);
    const groups = after.filter((message, index) => message.role === "tool" && after[index - 1]?.role !== "tool").length;
    return { key: keys[0], step: Math.min(groups, script[keys[0]].length - 1) };
  }
  return { key: null, step: 0 };
}

// What was asked, whole: the journal of the package cuts bodies.
const asked = [];

function answer(step) {
  let refused = 0;
  return (request) => {
    const { model, messages, tools } = request;
    asked.push({ model, messages, tools: (tools ?? []).map((tool) => tool.function?.name) });
    if (step.status && (!step.refusals || refused < step.refusals)) {
      refused += 1;
      return { error: { message: step.error || "scripted refusal", type: step.status === 529 ? "overloaded_error" : "api_error" }, status: step.status };
    }
    const said = { usage: { ...USAGE, ...step.usage } };
    if (step.reasoning) said.reasoning = step.reasoning;
    const calls = (step.calls ?? []).map((call) => ({ name: call.name, arguments: JSON.stringify(call.arguments), ...(call.id ? { id: call.id } : {}) }));
    if (step.text || !calls.length) said.content = step.text ?? "";
    if (calls.length) said.toolCalls = calls;
    return said;
  };
}

const models = new LLMock({ host: "127.0.0.1", port: 0 });
const wanted = (key, step) => (request) => {
  const found = place(request);
  return found.key === key && found.step === step;
};
models.addFixture({ match: { predicate: wanted("", 0) }, response: { content: "A short title", usage: USAGE } });
for (const [key, steps] of Object.entries(script))
  for (const [index, step] of steps.entries())
    models.addFixture({
      match: { predicate: wanted(key, index) },
      response: answer(step),
      latency: step.delay ?? 0,
      chunkSize: step.piece ?? 24,
    });
models.mount("/asked", {
  async handleRequest(_request, response) {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(asked));
    return true;
  },
});
await models.start();
process.stdout.write(`${models.url}\n`);
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
