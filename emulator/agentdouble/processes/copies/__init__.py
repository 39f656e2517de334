"""Copies of a living Python kernel: a template is forked from it, and copies from the template.

In forks of the kernel: ``template`` is the process that is forked between two cells and then is a
fork server. ``omissions`` counts what its copies lack. ``severing`` makes its sockets, threads and
event loop harmless to the kernel. ``inherited_files`` gives each copy files and shared memory of
its own, and ``kernel_copy`` has the steps of a copy. ``copied_view`` mounts the copy's directories,
in the process beside the fork server. These modules must not import the rest of the double; see
``fork_server``. In the double: ``kernel_snapshot`` takes a snapshot of a kernel and plans copies of
it, and ``template_channel`` is the channel to a template.

No library supports this, so the code uses names that are private to libraries, and more where
``fork_server`` builds a kernel once and connects it in each fork. They are listed here; a test
compares this list with the code and with the installed libraries. It was last checked with CPython
3.10, 3.11 and 3.13, IPython 8.18.0 and 9.18.1, ipykernel 7.3.0 and 7.4.0, matplotlib-inline 0.2.2,
pyzmq 27.3.0, tornado 6.5.10 and 6.6.1, and traitlets 5.16.1.

asyncio: _set_running_loop
asyncio.Handle: _args _callback
asyncio.SelectorEventLoop: _csock _default_executor _internal_fds _make_self_pipe _ready
    _scheduled _selector _signal_handlers _ssock _stopping _thread_id
asyncio.tasks: _unregister_task
concurrent.futures.ProcessPoolExecutor: _broken _processes
concurrent.futures.ThreadPoolExecutor: _broken _threads
ipykernel.IOPubThread: _event_pipe_gc_lock _event_pipes _handle_pipe_msg _handle_subscription
    _is_master_process _local _pipe_in _pipe_port _pipe_uuid _run_event_pipe_gc _setup_pipe_in
ipykernel.IPKernelApp: _apply_curve_server_options _bind_socket _ip_default _load_config
    _run_startup_files _session_default _trait_values
ipykernel.IPythonKernel: _cancel_on_sigint _control_lock _main_asyncio_lock _publish_status _topic
ipykernel.OutStream: _buffer_lock _buffers _exc _fid _flush _flush_pending _io_loop _master_pid
    _original_stdstream_copy _original_stdstream_fd _should_watch _subprocess_flush_pending
    _watch_pipe_fd
ipykernel.SubshellManager: _send_on_shell_channel
ipykernel.ipkernel: _comm_manager
ipykernel.utils: _async_in_context
IPython.HistoryManager: _get_hist_file_name _run_sql
IPython.InteractiveShell: _instance _walk_mro
IPython.InteractiveShellApp: _sys_modules_keys
IPython.ProfileDir: _location_isset
matplotlib_inline.backend_inline: _enable_matplotlib_integration
multiprocessing.pool.Pool: _state
tempfile: _name_sequence
tornado.BaseAsyncIOLoop: _handle_events
zmq.Context: _sockets
"""
