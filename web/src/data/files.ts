import { keepPreviousData, type QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, Problem } from '@/api/client'
import type { components } from '@/api/schema'
import type { Page } from '@/api/types'
import type { Project } from '@/data/projects'

export type Folder = components['schemas']['FolderOut']
export type FolderEntry = components['schemas']['FolderEntryOut']
export type FileContent = components['schemas']['ProjectFileOut']
export type GitStatus = components['schemas']['GitStatusOut']
export type ChangedFile = components['schemas']['ChangedFileOut']
export type Worktree = components['schemas']['WorktreeOut']
type Listed = components['schemas']['ListedFileOut']

const at = (project: string, rest = '') => `/projects/${encodeURIComponent(project)}${rest}`

const projectQuery = (id: string) => ({
  queryKey: ['projects', id],
  queryFn: ({ signal }: { signal: AbortSignal }) => api.get<Project>(at(id), { signal }),
  staleTime: 60_000,
})

/** Return the project from the list of all projects, if the list was fetched and contains it. */
function listed(client: QueryClient, id: string): Project | undefined {
  return client.getQueryData<Page<Project>>(['projects'])?.data.find((project) => project.id === id)
}

/** Fetch a project. Until then, it is the one in the list of all projects. */
export function useProject(id: string) {
  return useQuery({ ...projectQuery(id), placeholderData: listed(useQueryClient(), id) })
}

/** Fetch the first folder of a project ahead of its view, unless the project has no folder. Errors appear in the view. */
export async function prefetchFolder(client: QueryClient, id: string): Promise<void> {
  if (!listed(client, id)) await client.prefetchQuery(projectQuery(id))
  const project = listed(client, id) ?? client.getQueryData<Project>(['projects', id])
  if (project?.root_path) await client.prefetchQuery(folderQuery(id, '', false))
}

/** The query for the entries of a folder: the first ones, which are shown quickly, or as many as the server returns. */
export function folderQuery(project: string, path: string, most: boolean) {
  return {
    queryKey: ['projects', project, 'tree', path, most],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<Folder>(at(project, '/tree'), { query: { path, limit: most ? 2_000 : 200 }, signal }),
  }
}

/** Find files by name. An empty query fetches nothing. */
export function useFileSearch(project: string, query: string) {
  return useQuery({
    queryKey: ['projects', project, 'search', query],
    queryFn: ({ signal }) => api.get<Page<Listed>>(at(project, '/files'), { query: { q: query, limit: 50 }, signal }),
    enabled: query !== '',
    placeholderData: keepPreviousData,
  })
}

/** Fetch a file. An empty path fetches nothing. */
export function useFile(project: string, path: string) {
  return useQuery({
    queryKey: ['projects', project, 'file', path],
    queryFn: () => fetchFile(project, path),
    enabled: path !== '',
    staleTime: 0,
  })
}

function fetchFile(project: string, path: string): Promise<FileContent> {
  return api.get<FileContent>(at(project, '/file'), { query: { path } })
}

/** Return the hash of a file, or null if there is no file. */
export async function currentHash(project: string, path: string): Promise<string | null> {
  try {
    return (await fetchFile(project, path)).sha256
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return null
    throw error
  }
}

/** Return true if a file was not saved because it is not in the expected state. */
export function isConflict(error: unknown): boolean {
  return error instanceof Problem && (error.status === 412 || error.status === 409)
}

/** Save a text file if it still has the given hash; null creates it. */
export function useFileSave(project: string) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: ({ path, text, hash }: { path: string; text: string; hash: string | null }) =>
      api.put<FileContent>(
        `${at(project, '/file')}?path=${encodeURIComponent(path)}`,
        { text },
        {
          headers: hash === null ? { 'if-none-match': '*' } : { 'if-match': `"${hash}"` },
        },
      ),
    onSuccess: (saved, { path }) => {
      client.setQueryData(['projects', project, 'file', path], saved)
      void client.invalidateQueries({ queryKey: ['projects', project, 'git'] })
      void client.invalidateQueries({ queryKey: ['projects', project, 'tree'] })
    },
  })
}

/** Fetch the changes of a project. The status is null outside of a repository. */
export function useGitStatus(project: string, enabled = true) {
  return useQuery({
    queryKey: ['projects', project, 'git', 'status'],
    queryFn: ({ signal }) => api.get<{ status: GitStatus | null }>(at(project, '/git/status'), { signal }),
    enabled,
    staleTime: 0,
  })
}

/** Fetch the diff of a file. An empty path fetches nothing. */
export function useGitDiff(project: string, path: string, staged: boolean) {
  return useQuery({
    queryKey: ['projects', project, 'git', 'diff', path, staged],
    queryFn: ({ signal }) =>
      api.get<{ diff: string; cut: boolean }>(at(project, '/git/diff'), { query: { path, staged }, signal }),
    enabled: path !== '',
    staleTime: 0,
  })
}

/** Stage and unstage files, by path or all of them, and commit. */
export function useGitActions(project: string) {
  const client = useQueryClient()
  const onSettled = () => client.invalidateQueries({ queryKey: ['projects', project, 'git'] })
  const act = (name: 'stage' | 'unstage') => (paths: readonly string[]) =>
    api.post(at(project, `/git/${name}`), { paths })
  return {
    stage: useMutation({ mutationFn: act('stage'), onSettled }),
    unstage: useMutation({ mutationFn: act('unstage'), onSettled }),
    commit: useMutation({
      mutationFn: (message: string) => api.post<{ commit: string }>(at(project, '/git/commit'), { message }),
      onSettled,
    }),
  }
}

/** Fetch the worktrees of a project. */
export function useWorktrees(project: string) {
  return useQuery({
    queryKey: ['projects', project, 'worktrees'],
    queryFn: ({ signal }) => api.get<Page<Worktree>>(at(project, '/worktrees'), { signal }),
    staleTime: 0,
  })
}

export function useWorktreeDiff(project: string, name: string) {
  return useQuery({
    queryKey: ['projects', project, 'worktrees', name],
    queryFn: ({ signal }) =>
      api.get<components['schemas']['WorktreeDiffOut']>(at(project, `/worktrees/${encodeURIComponent(name)}/diff`), {
        signal,
      }),
    staleTime: 0,
  })
}

/** Remove a worktree, with its uncommitted changes if `force` is true. */
export function useWorktreeRemoval(project: string) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: ({ name, force }: { name: string; force: boolean }) =>
      api.delete<components['schemas']['WorktreeRemoved']>(at(project, `/worktrees/${encodeURIComponent(name)}`), {
        query: { force },
      }),
    // not awaited, and without the diffs, because the list and the open diff disappear with the worktree
    onSettled: () => {
      void client.invalidateQueries({ queryKey: ['projects', project, 'worktrees'], exact: true })
    },
  })
}
