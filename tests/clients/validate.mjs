// Validates messages as the AI SDK of one version does. Arguments: the version; stdin: [{name, message}]. Prints a line of JSON for each:
// {name, problem}, where the problem is empty if `validateUIMessages` accepts the message.
const ai = await import(`ai${process.argv[2]}`);
let text = "";
for await (const piece of process.stdin) text += piece;

for (const { name, message } of JSON.parse(text)) {
  let problem = "";
  try {
    await ai.validateUIMessages({ messages: [message] });
  } catch (error) {
    problem = `${error.message ?? error}`;
  }
  process.stdout.write(`${JSON.stringify({ name, problem })}\n`);
}
