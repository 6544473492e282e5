import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '@/api/client'
import type { Page } from '@/api/types'
import type { Json } from '@/settings/flat'
import { say } from '@/ui/toasts'

export interface Config {
  generation: number
  /** Why the file on disk is not in force; null when it is. */
  error: { file: string; line: number | null; column: number | null; message: string } | null
  home: string
  config: Record<string, Json>
  origin: Record<string, string>
  notes: string[]
}

export function useConfig() {
  return useQuery({
    queryKey: ['config'],
    queryFn: ({ signal }) => api.get<Config>('/config', { signal }),
    refetchInterval: 5_000, // the file is watched by the server; what a person writes there shows here
  })
}

export interface Model {
  id: string
  model: string
  provider: string
  context: number | null
  modalities: string[]
  tools: boolean | null
  reasoning: boolean | null
  /** Nano-dollars for one token. */
  price: { input: number | null; output: number | null } | null
  note: string
}

export function useModels() {
  return useQuery({
    queryKey: ['models'],
    queryFn: ({ signal }) =>
      api.get<Page<Model> & { problems?: Record<string, string> }>('/models', { query: { limit: 200 }, signal }),
    staleTime: 30_000,
  })
}

export interface Provider {
  id: string
  name: string
  dialect: string
  base_url: string
  available: boolean
  note: string
}

export function useProviders() {
  return useQuery({
    queryKey: ['providers'],
    queryFn: ({ signal }) => api.get<Page<Provider>>('/providers', { query: { limit: 200 }, signal }),
    staleTime: 30_000,
  })
}

/** What asking a model for one word came to. */
export interface Trial {
  ok: boolean
  text?: string
  seconds?: number
  error?: string
}

export function useTrial() {
  return useMutation({ mutationFn: (model: string) => api.post<Trial>('/models/test', { model }) })
}

export interface Agent {
  id: string
  name: string
  description: string
  agent_type: string
  model: string
  instructions: string
  tools: string[] | null
  role: string
  temperature: number | null
  max_steps: number | null
  effort: string | null
  fallback: string[]
}

export function useAgents() {
  return useQuery({
    queryKey: ['agents'],
    queryFn: ({ signal }) => api.get<Page<Agent>>('/agents', { query: { limit: 200 }, signal }),
    staleTime: 30_000,
  })
}

export interface Tool {
  name: string
  description: string
  arguments: Json
  effects: string[]
  concurrent: boolean
  idempotent: boolean
}

export function useTools() {
  return useQuery({
    queryKey: ['tools'],
    queryFn: ({ signal }) => api.get<Page<Tool>>('/tools', { query: { limit: 200 }, signal }),
    staleTime: 60_000,
  })
}

export interface Rule {
  kind: 'rule' | 'grant'
  tool: string
  action: 'allow' | 'ask' | 'deny'
  match: string
  origin?: string
}

export function useRules() {
  return useQuery({
    queryKey: ['permissions'],
    queryFn: ({ signal }) => api.get<Page<Rule>>('/permissions', { query: { limit: 200 }, signal }),
  })
}

export interface Token {
  id: string
  name: string
  scopes: string[]
  kind: 'token' | 'browser'
  created_at: number
  used_at: number | null
  expires_at: number | null
  revoked_at: number | null
}

export interface TokenMade extends Token {
  /** Shown this once. */
  secret: string
}

export function useTokens() {
  return useQuery({
    queryKey: ['tokens'],
    queryFn: ({ signal }) => api.get<Page<Token>>('/tokens', { query: { limit: 200 }, signal }),
  })
}

export function useTokenActs() {
  const client = useQueryClient()
  const onSettled = () => client.invalidateQueries({ queryKey: ['tokens'] })
  return {
    create: useMutation({
      mutationFn: (token: { name: string; scopes: string[]; expires_in?: number }) =>
        api.post<TokenMade>('/tokens', token),
      onSettled,
    }),
    revoke: useMutation({
      mutationFn: (id: string) => api.delete(`/tokens/${id}`),
      onSuccess: () => say('Revoked: its streams end within five seconds'),
      onSettled,
    }),
  }
}
