// What stands behind an MCP service, as forms have it, and the fields of requests.

import { act } from "../../lib/api.js";
import { quoted } from "../../lib/bar.js";
import { h, say } from "../../lib/dom.js";
import { FormError, schemaForm } from "../../lib/schema_form.js";
import { askInDialog } from "./submitting.js";

const TEXT = { type: "string" };
export const TOKEN = { ...TEXT, format: "password", description: "Sent as Authorization: Bearer." };
export const COMMAND = {
  type: "object",
  required: ["Command"],
  properties: {
    Command: { ...TEXT, description: "It speaks MCP over stdin and stdout.",
      examples: ["npx -y @modelcontextprotocol/server-filesystem ."] },
    Directory: { ...TEXT, title: "Working directory", examples: ["/home/me/project"] },
    Env: { type: "array", title: "Environment variables", items: {
      type: "object", required: ["Name", "Value"], properties: { Name: { ...TEXT, maxLength: 128 }, Value: { ...TEXT, format: "password" } } } },
  },
};

const WORD = /(?:[^\s"'\\]|\\[\s\S]|"(?:[^"\\]|\\[\s\S])*"|'[^']*')+/g;
const PART = /\\([\s\S])|"((?:[^"\\]|\\[\s\S])*)"|'([^']*)'/g;

/** The words of a command line, with quotes as a shell has them. @param {string} line @returns {string[]} */
export function wordsOf(line) {
  if (line.replace(WORD, "").trim()) throw new FormError("The command has an unclosed quote or a trailing backslash.");
  return (line.match(WORD) ?? []).map((word) => word.replace(PART, (_, escaped, quotes, single) =>
    escaped ?? single ?? quotes.replace(/\\(["\\$`])/g, "$1")));
}

/** @param {any} fields of COMMAND */
export function commandOf({ Command, Directory, Env = [] }) {
  const [command, ...args] = wordsOf(Command);
  const env = Object.fromEntries(Env.map((/** @type {any} */ variable) => [variable.Name, variable.Value]));
  const server = { command, args, env, ...(Directory && { cwd: Directory }) };
  return { BackendConfiguration: { CustomMcpConfiguration: { PublicPackage: { McpType: "stdio", RawConfig: JSON.stringify(server) } } } };
}

/** The fields with the address of a backend. @param {string} text @param {string} name of the field */
export function located(text, name) {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username) {
    throw new FormError(`${name} must be an address such as http://HOST:PORT/mcp, without user and password.`);
  }
  const at = { Domain: url.hostname.replace(/^\[|\]$/g, ""), ProtocolType: url.protocol.slice(0, -1), ...(url.port && { Port: Number(url.port) }) };
  return { Path: url.pathname + url.search, BackendConfiguration: { CustomConfiguration: at } };
}

/** The field with a backend's key. @param {string | undefined} key @param {string} protocol */
export function keyFor(key, protocol) {
  if (!key) return {};
  const place = protocol === "MCP" ? { ApiKeyLocation: "Header", Parameter: "Authorization" } : {};
  const value = protocol === "MCP" ? `Bearer ${key}` : key;
  return { OutboundAuthorizerConfiguration: { AuthorizerType: "ApiKey",
    Authorizer: { KeyAuth: { ApiKeys: [{ Name: "backend", Key: value }], ...place } } } };
}

/** The command of a service, if that is its backend. @param {any} service */
function commandIn(service) {
  const raw = service.BackendConfiguration.CustomMcpConfiguration?.PublicPackage?.RawConfig;
  return raw === undefined ? null : JSON.parse(raw);
}

/** @param {any} service a service */
export const isCommand = (service) => commandIn(service) !== null;

/** @param {any} service a service */
function backendText(service) {
  const command = commandIn(service);
  if (command) return [command.command, ...(command.args ?? [])].filter(Boolean).map(quoted).join(" ") || JSON.stringify(command);
  const address = addressIn(service);
  const text = service.ProtocolConfiguration.ProtocolConvertConfiguration;
  const title = text && JSON.parse(text).info?.title;
  return [title && `the API ${title}`, address].filter(Boolean).join(" at ") || "a server of the double's own process";
}

/** @param {any} found a service */
function addressIn({ BackendConfiguration: { CustomConfiguration: at } }) {
  if (!at?.Domain) return "";
  return `${at.ProtocolType ?? "http"}://${at.Domain}${at.Port ? `:${at.Port}` : ""}`;
}

/** @param {any} service a service */
export function changeBackend(service) {
  const command = commandIn(service);
  const form = command ? schemaForm(COMMAND, { values: formOf(command), label: "Command", asJson: false })
    : schemaForm(address(service), { values: { Address: addressIn(service) }, label: "Backend", asJson: false });
  askInDialog(`Change ${service.Name}`, [form.element], "Change", async () => {
    const body = command ? commandOf(form.read()) : addressed(form.read(), service.ProtocolType);
    await act("UpdateMCPService", { MCPServiceId: service.MCPServiceId, ...body });
    say("The service is changed.");
  });
}

/** @param {any} service */
const address = (service) => ({ type: "object", required: ["Address"], properties: {
  Address: { ...TEXT, format: "uri", description: "Without a path, which stays the same.", examples: ["http://localhost:9000"] },
  Key: { ...TEXT, format: "password", description: service.ProtocolType === "MCP"
    ? "A new token for the server, sent as Authorization: Bearer." : "A new key, sent as the definition says." } } });

/** @param {any} command as RawConfig has it */
const formOf = ({ command, args = [], cwd, env = {} }) => ({
  Command: [command, ...args].filter(Boolean).map(quoted).join(" "), ...(cwd && { Directory: cwd }),
  Env: Object.entries(env).map(([Name, Value]) => ({ Name, Value })) });

/** @param {any} fields @param {string} protocol */
function addressed({ Address, Key }, protocol) {
  const { Path, BackendConfiguration } = located(Address, "Address");
  if (Path !== "/") throw new FormError("Enter an address like http://HOST:PORT, without a path.");
  return { BackendConfiguration, ...keyFor(Key, protocol) };
}

/** @param {any} service */
export const backendCode = (service) => h("code", null, backendText(service));
