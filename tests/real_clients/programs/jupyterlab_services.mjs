// What a frontend does with the client library of JupyterLab and VS Code, @jupyterlab/services.

import services from "@jupyterlab/services";

const { KernelManager, KernelSpecManager, ServerConnection } = services;
const MESSAGES = 1000;

export async function converse({ jupyter }) {
  const { url: baseUrl, token } = jupyter;
  const wsUrl = baseUrl.replace(/^http/, "ws");
  const serverSettings = ServerConnection.makeSettings({ baseUrl, wsUrl, token, appendToken: true });
  const specs = new KernelSpecManager({ serverSettings });
  await specs.ready;
  const manager = new KernelManager({ serverSettings });
  const kernel = await manager.startNew({ name: specs.specs.default });
  const outcome = { specs: Object.keys(specs.specs.kernelspecs).filter((name) => !name.startsWith("session-")) };

  outcome.output = await execute(kernel, "x = 6 * 7; print(x); x");
  outcome.error = await execute(kernel, "1 / 0");
  outcome.input = await execute(kernel, "print('Hello,', input('Name? '))", "ann");
  outcome.completion = (await kernel.requestComplete({ code: "pri", cursor_pos: 3 })).content.matches;
  outcome.comm = await roundTrip(kernel);
  outcome.messages = await count(kernel);
  outcome.interrupted = await interrupt(kernel);
  await kernel.restart();
  outcome.restarted = await execute(kernel, "'x' in globals()");
  outcome.second = await attach(manager, kernel);
  await kernel.shutdown();
  outcome.left = (await listed(manager)).includes(kernel.id);
  return { kernels: outcome };
}

// Return the texts and results of a cell, or the name of its error.
async function execute(kernel, code, answer = "") {
  const future = kernel.requestExecute({ code, allow_stdin: true });
  const outputs = [];
  future.onIOPub = ({ header, content }) => {
    if (header.msg_type === "stream") outputs.push(content.text);
    if (header.msg_type === "execute_result") outputs.push(content.data["text/plain"]);
  };
  future.onStdin = (request) =>
    kernel.sendInputReply({ status: "ok", value: answer }, request.header);
  const { content } = await future.done;
  return content.status === "error" ? content.ename : outputs.join("");
}

// Open a comm to a target of the kernel, and return what it sends back.
async function roundTrip(kernel) {
  const echo = "comm.on_msg(lambda m: comm.send(m['content']['data']))";
  await execute(
    kernel,
    `get_ipython().kernel.comm_manager.register_target("echo", lambda comm, _: ${echo})`,
  );
  const comm = kernel.createComm("echo");
  const received = new Promise((resolve) => {
    comm.onMsg = ({ content }) => resolve(content.data.text);
  });
  await comm.open().done;
  comm.send({ text: "there and back" });
  return await received;
}

// Return how many of many messages arrive once each and in order.
async function count(kernel) {
  const code = `for n in range(${MESSAGES}):\n    display({"text/plain": str(n)}, raw=True)`;
  const future = kernel.requestExecute({ code });
  const numbers = [];
  future.onIOPub = ({ header, content }) => {
    if (header.msg_type === "display_data") numbers.push(Number(content.data["text/plain"]));
  };
  await future.done;
  return numbers.length === MESSAGES && numbers.every((number, index) => number === index);
}

async function interrupt(kernel) {
  const code = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(60)";
  const future = kernel.requestExecute({ code });
  future.onIOPub = ({ header }) => {
    if (header.msg_type === "stream") void kernel.interrupt();
  };
  return (await future.done).content.ename;
}

// Let a second client use the kernel; the first sees its output.
async function attach(manager, kernel) {
  const heard = new Promise((resolve) => {
    kernel.anyMessage.connect((_, { msg, direction }) => {
      if (direction === "recv" && msg.header.msg_type === "stream") resolve(msg.content.text);
    });
  });
  const second = manager.connectTo({ model: { id: kernel.id, name: kernel.name } });
  const text = await execute(second, "print('both')");
  const outcome = [text, await heard];
  second.dispose();
  return outcome;
}

async function listed(manager) {
  await manager.refreshRunning();
  return [...manager.running()].map((model) => model.id);
}
