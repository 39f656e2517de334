// The backend of an MCP service: the fields of its forms, and of requests that create or change it.

import { act } from "../../lib/api.js";
import { announce, h } from "../../lib/dom.js";
import { FormError, schemaForm } from "../../lib/schema_form.js";
import { quoted, wordsOf } from "../../lib/shell.js";
import { formDialog } from "./submit_form.js";

const TEXT = { type: "string" };
export const TOKEN = { ...TEXT, format: "password", description: "Sent as Authorization: Bearer." };
export const LOGIN = { ...TEXT, format: "password", title: "User and password", description: "Sent as Authorization: Basic.", examples: ["user:password"] };
export const COMMAND = {
  type: "object",
  required: ["Command"],
  properties: {
    Command: { ...TEXT, description: "A program that speaks MCP over stdin and stdout.",
      examples: ["npx -y @modelcontextprotocol/server-filesystem ."] },
    Directory: { ...TEXT, title: "Working directory", examples: ["/home/me/project"] },
    Env: { type: "array", title: "Environment variables", items: {
      type: "object", required: ["Name", "Value"], properties: { Name: { ...TEXT, maxLength: 128 }, Value: { ...TEXT, format: "password" } } } },
  },
};

/** Return a request's fields for a command. @param {any} fields of COMMAND */
export function commandOf({ Command, Directory, Env = [] }) {
  const [command, ...args] = wordsOf(Command);
  const env = Object.fromEntries(Env.map((/** @type {any} */ variable) => [variable.Name, variable.Value]));
  const server = { command, args, env, ...(Directory && { cwd: Directory }) };
  return { BackendConfiguration: { CustomMcpConfiguration: { PublicPackage: { McpType: "stdio", RawConfig: JSON.stringify(server) } } } };
}

/** Return a request's fields for a backend's address. @param {string} text @param {string} name of the form field
 * @param {string} path of the example in a refusal */
export function located(text, name, path = "/mcp") {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username) {
    throw new FormError(`${name} must be an address such as http://HOST:PORT${path}, without user and password.`);
  }
  const at = { Domain: url.hostname.replace(/^\[|\]$/g, ""), ProtocolType: url.protocol.slice(0, -1), ...(url.port && { Port: Number(url.port) }) };
  return { Path: url.pathname + url.search, BackendConfiguration: { CustomConfiguration: at } };
}

/** Return a request's field for a backend's credential: a key, or "user:password".
 * @param {{key?: string, login?: string}} credential @param {string} protocol */
export function keyFor({ key, login }, protocol) {
  if (key && login) throw new FormError("Enter a key, or a user and a password, but not both.");
  if (login && !login.includes(":")) throw new FormError("User and password must have the form user:password.");
  if (!key && !login) return {};
  const inHeader = login || protocol === "MCP";
  const place = inHeader ? { ApiKeyLocation: "Header", Parameter: "Authorization" } : {};
  const value = login ? `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(login)))}` : inHeader ? `Bearer ${key}` : key;
  return { OutboundAuthorizerConfiguration: { AuthorizerType: "ApiKey",
    Authorizer: { KeyAuth: { ApiKeys: [{ Name: "backend", Key: value }], ...place } } } };
}

/** Return the command of a service, or null if its backend is not a command. @param {any} service */
function commandIn(service) {
  const raw = service.BackendConfiguration.CustomMcpConfiguration?.PublicPackage?.RawConfig;
  return raw === undefined ? null : JSON.parse(raw);
}

/** @param {any} service */
export const isCommand = (service) => commandIn(service) !== null;

/** @param {any} service */
function backendText(service) {
  const command = commandIn(service);
  if (command) return [command.command, ...(command.args ?? [])].filter(Boolean).map(quoted).join(" ") || JSON.stringify(command);
  const address = addressIn(service);
  const text = service.ProtocolConfiguration.ProtocolConvertConfiguration;
  const title = text && JSON.parse(text).info?.title;
  return [title && `the API ${title}`, address].filter(Boolean).join(" at ") || "a server of the double's own process";
}

/** @param {any} service */
function addressIn({ BackendConfiguration: { CustomConfiguration: at } }) {
  if (!at?.Domain) return "";
  return `${at.ProtocolType ?? "http"}://${at.Domain}${at.Port ? `:${at.Port}` : ""}`;
}

/** @param {any} service */
export function changeBackend(service) {
  const command = commandIn(service);
  const form = command ? schemaForm(COMMAND, { values: formOf(command), label: "Command", asJson: false })
    : schemaForm(addressSchema(service), { values: { Address: addressIn(service) }, label: "Backend", asJson: false });
  formDialog(`Change ${service.Name}`, [form.element], "Change", async () => {
    const body = command ? commandOf(form.read()) : addressed(form.read(), service.ProtocolType);
    await act("UpdateMCPService", { MCPServiceId: service.MCPServiceId, ...body });
    announce("The service was changed.");
  });
}

/** @param {any} service */
const addressSchema = (service) => ({ type: "object", required: ["Address"], properties: {
  Address: { ...TEXT, format: "uri", description: "Without a path; the path stays the same.", examples: ["http://localhost:9000"] },
  Key: { ...TEXT, format: "password", description: service.ProtocolType === "MCP"
    ? "A new token for the server, sent as Authorization: Bearer." : "A new key, sent where the definition says." }, Login: LOGIN } });

/** Return the form's values for a command. @param {any} command as in RawConfig */
const formOf = ({ command, args = [], cwd, env = {} }) => ({
  Command: [command, ...args].filter(Boolean).map(quoted).join(" "), ...(cwd && { Directory: cwd }),
  Env: Object.entries(env).map(([Name, Value]) => ({ Name, Value })) });

/** @param {any} fields @param {string} protocol */
function addressed({ Address, Key, Login }, protocol) {
  const { Path, BackendConfiguration } = located(Address, "Address", "");
  if (Path !== "/") throw new FormError("Enter an address like http://HOST:PORT, without a path.");
  return { BackendConfiguration, ...keyFor({ key: Key, login: Login }, protocol) };
}

/** @param {any} service */
export const backendCode = (service) => h("code", null, backendText(service));
