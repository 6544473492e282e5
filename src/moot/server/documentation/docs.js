// Renders /openapi.json. All text is set with textContent; nothing is parsed as markup.
'use strict'

const METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options']
const DEPTH = 4

const at = (id) => document.getElementById(id)

function make(tag, { text, ...attributes } = {}, children = []) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  if (text !== undefined) element.textContent = text
  element.append(...children)
  return element
}

const schemaName = (reference) => reference.split('/').pop()

function follow(root, reference) {
  return reference.slice(2).split('/').reduce((node, step) => node?.[step], root)
}

// Return a readable outline of a schema: type names, with one line per object field.
function outline(root, schema, depth = 0) {
  if (!schema) return 'anything'
  if (schema.$ref) return depth >= DEPTH ? schemaName(schema.$ref) : outline(root, follow(root, schema.$ref), depth)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if ('const' in schema) return JSON.stringify(schema.const)
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return choices.map((choice) => outline(root, choice, depth + 1)).join(' | ')
  if (schema.type === 'array') return `[${outline(root, schema.items, depth + 1)}]`
  if (schema.type === 'object' && schema.properties) return object(root, schema, depth)
  return schema.format ? `${schema.type} (${schema.format})` : String(schema.type ?? 'anything')
}

function object(root, schema, depth) {
  if (depth >= DEPTH) return schema.title ?? 'object'
  const indent = '  '.repeat(depth + 1)
  const lines = Object.entries(schema.properties).map(([name, property]) => {
    const optional = schema.required?.includes(name) ? '' : '?'
    const comment = property.description ? `  // ${property.description.replaceAll('\n', ' ')}` : ''
    return `${indent}${name}${optional}: ${outline(root, property, depth + 1)}${comment}`
  })
  return `{\n${lines.join('\n')}\n${'  '.repeat(depth)}}`
}

function contents(root, title, content) {
  return Object.entries(content ?? {}).flatMap(([type, { schema }]) => [
    make('h3', { text: `${title} (${type})` }),
    make('pre', { text: outline(root, schema) }),
  ])
}

function parameters(root, list) {
  if (!list.length) return []
  const rows = list.map((each) =>
    make('tr', {}, [
      make('td', {}, [make('code', { text: each.name + (each.required ? '' : '?') })]),
      make('td', { text: each.in }),
      make('td', {}, [make('code', { text: outline(root, each.schema) })]),
      make('td', { text: each.description ?? '' }),
    ]),
  )
  return [make('h3', { text: 'Parameters' }), make('table', {}, [make('tbody', {}, rows)])]
}

function responsesOf(root, responses) {
  return Object.entries(responses).flatMap(([status, response]) => {
    if (response.$ref) return [] // errors have the same format everywhere
    const shown = contents(root, status, response.content)
    return shown.length ? shown : [make('h3', { text: `${status}: no content` })]
  })
}

function operation(root, path, method, details) {
  const scope = details.security?.[0]?.token?.[0]
  const summary = make('summary', {}, [
    make('span', { class: 'method', text: method.toUpperCase() }),
    make('span', { class: 'path', text: path }),
    make('span', { class: 'dim', text: details.summary ?? '' }),
  ])
  const body = make('div', {}, [make('p', { class: 'dim', text: scope ? `Requires a token with the scope ${scope}.` : 'No token required.' })])
  if (details.description) body.append(make('p', { text: details.description }))
  body.append(...parameters(root, details.parameters ?? []))
  body.append(...contents(root, 'Body', details.requestBody?.content))
  body.append(...responsesOf(root, details.responses ?? {}))
  const element = make('details', { id: details.operationId }, [summary, body])
  element.words = `${method} ${path} ${details.summary ?? ''} ${details.description ?? ''}`.toLowerCase()
  return element
}

function show(root) {
  at('version').textContent = root.info.version
  at('about').textContent = root.info.description
  const groups = new Map()
  for (const [path, operations] of Object.entries(root.paths)) {
    for (const method of METHODS.filter((each) => operations[each])) {
      const details = operations[method]
      const tag = details.tags?.[0] ?? 'other'
      if (!groups.has(tag)) groups.set(tag, [])
      groups.get(tag).push(operation(root, path, method, details))
    }
  }
  at('operations').replaceChildren(...[...groups].map(([tag, list]) => make('section', {}, [make('h2', { text: tag }), ...list])))
  at('status').textContent = ''
}

function filter() {
  const words = at('filter').value.toLowerCase().split(/\s+/).filter(Boolean)
  for (const section of at('operations').children) {
    let any = false
    for (const each of section.querySelectorAll('details')) {
      each.hidden = !words.every((word) => each.words.includes(word))
      any ||= !each.hidden
    }
    section.hidden = !any
  }
}

async function load(token) {
  const response = await fetch('/openapi.json', token ? { headers: { authorization: `Bearer ${token}` } } : {})
  at('key').hidden = response.ok
  if (response.ok) return show(await response.json())
  at('status').textContent = token ? 'The token is invalid, expired or revoked.' : ''
}

function fail(error) {
  at('status').textContent = `Could not load the API description: ${error.message}`
}

at('filter').addEventListener('input', filter)
at('key').addEventListener('submit', (event) => {
  event.preventDefault()
  load(at('token').value).catch(fail)
})
load().catch(fail)
